package analysis

import "strings"

// Error says why a command or a schema is refused. It holds no value of the command.
type Error struct {
	Command   string // the command's name; empty for a schema
	Namespace string
	Path      string // of the field, or empty
	Operator  string // of the filter, update, expression or pipeline, or empty
	Reason    string
	Instead   string // what would work, or empty
}

// Error returns all parts in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("query analysis: ")
	if e.Command != "" {
		b.WriteString(e.Command)
		b.WriteByte(' ')
	}
	if e.Namespace != "" {
		b.WriteString(e.Namespace)
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	switch {
	case e.Path != "" && e.Operator != "":
		b.WriteString(" (field '" + e.Path + "', operator " + e.Operator + ")")
	case e.Path != "":
		b.WriteString(" (field '" + e.Path + "')")
	case e.Operator != "":
		b.WriteString(" (" + e.Operator + ")")
	}
	if e.Instead != "" {
		b.WriteString("; " + e.Instead)
	}
	return b.String()
}
