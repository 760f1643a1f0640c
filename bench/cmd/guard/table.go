package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"allium/bench"
)

// tableFile has what each operation took when somebody looked last.
const tableFile = "guard.txt"

const tableHead = `# What Allium takes for an operation against the null server: allocations, system calls that read
# and write, instructions (-1: not counted). "go -C bench run ./cmd/guard -table" compares, and
# with -update writes this file.
`

// table counts, and compares with the file or writes it.
func table(update bool) (err error) {
	env := new(bench.Env)
	defer func() { err = errors.Join(err, env.Close()) }()
	counts, err := bench.Counts(env)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s\n%s", runtime.Version(), runtime.GOOS, runtime.GOARCH, bench.FormatCounts(counts))
	if counts[0].Calls < 0 {
		fmt.Println("the kernel does not count system calls here: they are not compared")
	}
	if counts[0].Instructions < 0 {
		fmt.Println("this machine does not count instructions: they are not compared")
	}
	if update {
		return os.WriteFile(tableFile, []byte(tableHead+bench.FormatCounts(counts)), 0o644)
	}
	text, err := os.ReadFile(tableFile)
	if err != nil {
		return err
	}
	before, err := bench.ParseCounts(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", tableFile, err)
	}
	return against(before, counts)
}

// against returns an error that names each task that takes more than before, or that only one side
// has.
func against(before map[string]bench.Count, counts []bench.Count) error {
	var errs []error
	for _, now := range counts {
		was, ok := before[now.Task]
		delete(before, now.Task)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: not in %s", now.Task, tableFile))
			continue
		}
		errs = append(errs, was.Worse(now))
	}
	for task := range before {
		errs = append(errs, fmt.Errorf("%s: in %s, and not counted any more", task, tableFile))
	}
	return errors.Join(errs...)
}
