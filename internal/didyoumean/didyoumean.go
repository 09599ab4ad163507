package didyoumean

import "strings"

// longest is the maximum length of a name that is compared: a longer name is not a typing error of one of ours.
const longest = 64

// Closest returns the candidate that differs least from name, if the difference is small for the length of name; otherwise
// the shortest candidate that begins with name; empty if there is none. Case is ignored.
func Closest(name string, candidates []string) string {
	if len(name) > longest {
		return ""
	}
	best, bestDist := "", max(1, len(name)/3)+1
	beginning := ""
	for _, c := range candidates {
		a, b := strings.ToLower(name), strings.ToLower(c)
		if d := distance(a, b); d < bestDist {
			best, bestDist = c, d
		}
		if len(a) >= 4 && strings.HasPrefix(b, a) && (beginning == "" || len(c) < len(beginning)) {
			beginning = c
		}
	}
	if best == "" {
		return beginning
	}
	return best
}

// distance returns the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
