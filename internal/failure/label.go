package failure

import (
	"errors"
	"slices"

	"allium/mongoerr"
)

// AddTo adds a label to a set of labels that does not have it yet. The set must not be a user's
// already.
func AddTo(l *mongoerr.Labels, label string) {
	if !l.HasLabel(label) {
		*l = append((*l)[:len(*l):len(*l)], label)
	}
}

// AddLabel adds a label to the outermost error of err's chain that takes labels.
func AddLabel(err error, label string) { addLabel(err, label) }

// addLabel reports whether there is such an error.
func addLabel(err error, label string) bool {
	for err != nil {
		if l := labels(err); l != nil {
			AddTo(l, label)
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(many.Unwrap(), func(err error) bool { return addLabel(err, label) })
		}
		err = errors.Unwrap(err)
	}
	return false
}

// labels returns the labels of err itself, nil if it is of a type without any.
func labels(err error) *mongoerr.Labels {
	switch e := err.(type) {
	case *mongoerr.ServerError:
		return &e.Labels
	case *mongoerr.ConnectionError:
		return &e.Labels
	case *mongoerr.TimeoutError:
		return &e.Labels
	case *mongoerr.SelectionError:
		return &e.Labels
	case *mongoerr.PoolClearedError:
		return &e.Labels
	case *mongoerr.WriteConcernError:
		return &e.Labels
	case *mongoerr.BulkWriteError:
		return &e.Labels
	}
	return nil
}

// AllLabels returns the labels of err and of all errors that it wraps, each once.
func AllLabels(err error) []string {
	var all mongoerr.Labels
	collect(err, &all)
	return all
}

func collect(err error, all *mongoerr.Labels) {
	for err != nil {
		if l, ok := err.(interface{ ErrorLabels() []string }); ok {
			for _, label := range l.ErrorLabels() {
				AddTo(all, label)
			}
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				collect(e, all)
			}
			return
		}
		err = errors.Unwrap(err)
	}
}

// Detach returns a copy of an operation's error for others to keep: labels that are added to err
// later do not reach it, and those it has, which say what that operation may do, are left out.
func Detach(err error) error {
	switch e := err.(type) {
	case *mongoerr.ConnectionError:
		c := *e
		c.Labels = nil
		return &c
	case *mongoerr.ServerError:
		c := *e
		c.Labels = nil
		return &c
	case *mongoerr.WriteConcernError:
		c := *e
		c.Labels = nil
		return &c
	case *mongoerr.AuthError:
		c := *e
		c.Wrapped = Detach(e.Wrapped)
		return &c
	case *mongoerr.TimeoutError:
		c := *e
		c.Labels, c.Wrapped = nil, Detach(e.Wrapped)
		return &c
	}
	return err
}
