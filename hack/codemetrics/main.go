package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
)

// row is a line of the table.
type row struct{ point, now, goal string }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "codemetrics:", err)
		os.Exit(1)
	}
}

func run() error {
	markdown := flag.Bool("markdown", false, "print rows of a Markdown table")
	commits := flag.Int("commits", 200, "how many commits of the history to look at")
	unused := flag.Bool("unused", false, "also count exported identifiers that no other package needs (type-checks the module: minutes)")
	names := flag.Bool("names", false, "with -unused: name each of them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	src, err := readSources(ctx)
	if err != nil {
		return err
	}
	rows := src.rows()
	imports, err := importRows(ctx)
	if err != nil {
		return err
	}
	rows = append(rows, imports...)
	history, err := historyRows(ctx, *commits)
	if err != nil {
		return err
	}
	rows = append(rows, history...)
	if *unused {
		more, err := unusedRows(ctx, ".", *names)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return show(rows, *markdown)
}

func show(rows []row, markdown bool) error {
	if markdown {
		for _, r := range rows {
			fmt.Printf("| %s | %s | %s |\n", r.point, r.now, r.goal)
		}
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POINT\tNOW\tGOAL")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.point, r.now, r.goal)
	}
	return w.Flush()
}

// spread returns the median, the 95th percentile and the maximum of values as "10/31/67".
func spread(values []int) string {
	if len(values) == 0 {
		return "none"
	}
	slices.Sort(values)
	at := func(percent int) int { return values[(len(values)-1)*percent/100] }
	return fmt.Sprintf("%d/%d/%d", at(50), at(95), at(100))
}
