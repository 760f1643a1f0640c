package bench

import (
	"fmt"
	"slices"
	"strings"
)

// A Task is one thing that both drivers do.
type Task struct {
	Name     string            // group/what/how, for example "bson/flat/decode D"
	Bytes    int               // the size of the data set for one operation, for MB/s
	Target   float64           // the ratio of the speeds that Allium aims at; 0 if there is none
	Allium   func(n int) error // does the operation n times
	Official func(n int) error
}

// A group is a set of tasks with what they need to be set up.
type group struct {
	name  string
	tasks func() ([]Task, error)
}

var groups = []group{
	{"bson", bsonTasks},
}

// Tasks returns the tasks whose names start with prefix, and sets up only the groups that they are in.
func Tasks(prefix string) ([]Task, error) {
	var out []Task
	for _, g := range groups {
		if !strings.HasPrefix(prefix, g.name) && !strings.HasPrefix(g.name, prefix) {
			continue
		}
		tasks, err := g.tasks()
		if err != nil {
			return nil, fmt.Errorf("set up %s: %w", g.name, err)
		}
		out = append(out, slices.DeleteFunc(tasks, func(t Task) bool { return !strings.HasPrefix(t.Name, prefix) })...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no task starts with %q", prefix)
	}
	return out, nil
}

// repeat makes a Task's function of one operation.
func repeat(op func() error) func(int) error {
	return func(n int) error {
		for range n {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	}
}
