package requirements

import "fmt"

// Count tells what the rows of a file are.
type Count struct {
	Rows    int
	Tested  int // have tests
	Differs int
	NotOurs int // about servers or other languages, or superseded
	Choice  int // recommendations and choices that the driver leaves
	Same    int
}

// documented is how many rows the documentation keeps, and nothing else.
func (c Count) documented() int { return c.Rows - c.Tested - c.Differs - c.NotOurs - c.Choice - c.Same }

// Count counts the rows.
func (f File) Count() Count {
	var c Count
	for _, r := range f.Rows {
		c.Rows++
		switch r.Kind {
		case Differs:
			c.Differs++
		case Other, Superseded:
			c.NotOurs++
		case Option:
			c.Choice++
		case Same:
			c.Same++
		default:
			if len(r.Tests) > 0 {
				c.Tested++
			}
		}
	}
	return c
}

// Add adds another count.
func (c *Count) Add(d Count) {
	c.Rows += d.Rows
	c.Tested += d.Tested
	c.Differs += d.Differs
	c.NotOurs += d.NotOurs
	c.Choice += d.Choice
	c.Same += d.Same
}

// Check returns what rows name and the source does not have.
func (s *Source) Check(files []File) []error {
	var found []error
	for _, f := range files {
		for _, r := range f.Rows {
			note := func(err error) {
				if err != nil {
					found = append(found, fmt.Errorf("%s:%d: %s: %w", f.Name, r.Line, r.ID, err))
				}
			}
			if r.Kind != Same {
				for _, w := range r.Where {
					note(s.Declared(w))
				}
			}
			for _, t := range r.Tests {
				note(s.Tested(t))
			}
		}
	}
	return found
}
