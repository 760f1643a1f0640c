package golden

import (
	"fmt"
	"slices"
)

// Record runs a case twice and puts the replies into it: what differs between the two runs, or is
// known to differ from one server to the next, becomes a placeholder for its type.
func (r *Runner) Record(c *Case, topology string) error {
	first, err := r.Run(*c)
	if err != nil {
		return err
	}
	second, err := r.Run(*c)
	if err != nil {
		return fmt.Errorf("second run: %w", err)
	}
	c.Steps = slices.Clone(c.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Quiet || first[i] == nil || second[i] == nil {
			continue
		}
		s.Reply = Normalize(first[i], second[i], s.Ignore)
	}
	c.Topologies = []string{topology}
	return nil
}
