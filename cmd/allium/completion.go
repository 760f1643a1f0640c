package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

// completion prints a script that completes the names of commands and of their flags.
func completion(_ context.Context, args []string, stdout, stderr io.Writer) int {
	shells := map[string]func(io.Writer){"bash": bash, "zsh": zsh, "fish": fish}
	if len(args) != 1 || shells[args[0]] == nil {
		return misuse("allium completion", stderr, "want one of bash, zsh and fish")
	}
	shells[args[0]](stdout)
	return succeeded
}

// flagsOf returns the flags of a verb in the order of their names.
func flagsOf(v verb) (list []*flag.Flag) {
	if v.flags == nil {
		return nil
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	v.flags(fs)
	fs.VisitAll(func(f *flag.Flag) { list = append(list, f) })
	return list
}

// words returns what may follow a verb: its flags, and the arguments that are known.
func words(v verb) []string {
	var list []string
	for _, f := range flagsOf(v) {
		list = append(list, "-"+f.Name)
	}
	switch v.name {
	case "completion":
		list = append(list, "bash", "zsh", "fish")
	case "schema":
		list = append(list, "plan", "apply", "diff", "export")
	case "migrate":
		list = append(list, "status", "unlock")
	case "help":
		for _, other := range verbs() {
			list = append(list, other.name)
		}
	}
	return list
}

func bash(w io.Writer) {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	fmt.Fprintf(w, `# bash completion for allium: source <(allium completion bash)
_allium() {
	local cur=${COMP_WORDS[COMP_CWORD]} words
	if [ "$COMP_CWORD" -eq 1 ]; then
		words=%q
	else
		case ${COMP_WORDS[1]} in
`, strings.Join(names, " "))
	for _, v := range verbs() {
		if list := words(v); len(list) > 0 {
			fmt.Fprintf(w, "\t\t%s) words=%q ;;\n", v.name, strings.Join(list, " "))
		}
	}
	fmt.Fprint(w, `		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	if [ ${#COMPREPLY[@]} -eq 0 ]; then
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -F _allium allium
`)
}

func zsh(w io.Writer) {
	fmt.Fprint(w, "#compdef allium\n# zsh completion for allium: source <(allium completion zsh)\n_allium() {\n\tlocal -a list\n\tif (( CURRENT == 2 )); then\n\t\tlist=(\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "\t\t\t%s\n", quote(v.name+":"+v.summary))
	}
	fmt.Fprint(w, "\t\t)\n\t\t_describe command list\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, v := range verbs() {
		list := words(v)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(w, "\t%s) list=(", v.name)
		for _, word := range list {
			fmt.Fprintf(w, " %s", quote(word))
		}
		fmt.Fprint(w, " ) ;;\n")
	}
	fmt.Fprint(w, "\tesac\n\t_describe argument list || _files\n}\ncompdef _allium allium\n")
}

func fish(w io.Writer) {
	fmt.Fprint(w, "# fish completion for allium: allium completion fish | source\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "complete -c allium -n __fish_use_subcommand -f -a %s -d %s\n", v.name, quote(v.summary))
		for _, f := range flagsOf(v) {
			_, use := flag.UnquoteUsage(f)
			fmt.Fprintf(w, "complete -c allium -n '__fish_seen_subcommand_from %s' -o %s -d %s\n", v.name, f.Name,
				quote(use))
		}
	}
	fmt.Fprint(w, "complete -c allium -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n")
}

// quote returns a word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
