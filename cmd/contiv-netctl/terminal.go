package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colors reports whether the output is coloured.
func (n *netctl) colors(w io.Writer) bool {
	switch n.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && isTerminal(w)
}

// print writes the value for scripts, or the table for users.
func (n *netctl) print(cmd *cobra.Command, value any, t table.Table) error {
	t.Color = n.colors(n.screen(cmd))
	return table.Write(cmd.OutOrStdout(), n.format, value, t)
}

// screen returns the final destination of a command's output, also in watch mode.
func (n *netctl) screen(cmd *cobra.Command) io.Writer {
	if n.watch > 0 {
		return os.Stdout
	}
	return cmd.OutOrStdout()
}

// watchable adds the flag --watch to a command.
func (n *netctl) watchable(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().DurationVarP(&n.watch, "watch", "w", 0, "repeat this often, such as --watch=5s, until interrupted")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	return cmd
}

// clear moves a terminal to its top left corner and clears what is below.
const clear = "\x1b[H\x1b[J"

// repeat runs a command until it is interrupted. It prints the whole output at once, so that a terminal does not flicker. An error of the
// command does not stop it, because the agent may become available again.
func (n *netctl) repeat(cmd *cobra.Command, args []string, once func(*cobra.Command, []string) error) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	defer func() { cmd.SetOut(out); cmd.SetErr(errs) }()
	for {
		var b bytes.Buffer
		cmd.SetOut(&b)
		cmd.SetErr(&b)
		if err := once(cmd, args); err != nil && !errors.Is(err, errFound) {
			fmt.Fprintln(&b, "contiv-netctl:", err)
		}
		if cmd.Context().Err() != nil {
			return nil
		}
		if isTerminal(out) {
			fmt.Fprintf(out, "%severy %s: contiv-netctl %s, %s\n\n", clear, n.watch, cmd.Name(), time.Now().Format(time.TimeOnly))
		}
		if _, err := b.WriteTo(out); err != nil {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(n.watch):
		}
	}
}

// count returns a number of things as text: "1 node", "2 nodes".
func count(n int, thing string) string { return state.Count(n, thing) }
