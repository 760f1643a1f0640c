package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

// man prints the page of the manual, which has what "allium help" says of every command.
func man(_ context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		return misuse("allium man", stderr, "it takes no arguments")
	}
	fmt.Fprint(stdout, ".TH ALLIUM 1\n.SH NAME\nallium \\- a tool for MongoDB deployments\n.SH SYNOPSIS\n.B allium\n.I COMMAND\n[flags] [arguments]\n.SH COMMANDS\n")
	for _, v := range verbs() {
		fmt.Fprintf(stdout, ".SS %s\n%s.\n", roff(strings.TrimSpace("allium "+v.name+" "+v.args)),
			roff(upper(v.summary)))
		for _, f := range flagsOf(v) {
			value, text := flag.UnquoteUsage(f)
			fmt.Fprintf(stdout, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s\n", roff("-"+f.Name), roff(value), roff(upper(text)))
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
				fmt.Fprintf(stdout, "Default: %s.\n", roff(f.DefValue))
			}
		}
	}
	fmt.Fprint(stdout, ".SH EXIT STATUS\n0 on success, 1 on failure, 2 if the command line is wrong, and 3 if schema plan, schema diff or migrate status finds a difference.\n")
	return succeeded
}

// roff writes a text so that nothing in it is a request: not a backslash, a hyphen that would be
// typeset, or a line that begins with a full stop or an apostrophe.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
