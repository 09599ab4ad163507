package cniapi

// IsGUID reports whether the text is a GUID, with or without braces. On Windows a network namespace is a GUID; on Linux it
// is a path.
func IsGUID(text string) bool {
	if n := len(text); n == 38 && text[0] == '{' && text[n-1] == '}' {
		text = text[1 : n-1]
	}
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if dash && c != '-' || !dash && !hex {
			return false
		}
	}
	return true
}
