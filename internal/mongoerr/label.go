package mongoerr

import (
	"errors"
	"slices"
)

// The error labels that the specifications name.
const (
	LabelRetryableWrite           = "RetryableWriteError"
	LabelNoWritesPerformed        = "NoWritesPerformed"
	LabelTransientTransaction     = "TransientTransactionError"
	LabelUnknownTransactionCommit = "UnknownTransactionCommitResult"
	LabelResumableChangeStream    = "ResumableChangeStreamError"
	LabelNonResumableChangeStream = "NonResumableChangeStreamError"
	LabelSystemOverloaded         = "SystemOverloadedError"
	LabelRetryable                = "RetryableError"
)

// Labels are the error labels of an error: those that the server sent, and those that the specifications make the
// driver add.
type Labels []string

// HasLabel reports whether the error carries this label.
func (l Labels) HasLabel(label string) bool { return slices.Contains(l, label) }

// ErrorLabels returns the labels.
func (l Labels) ErrorLabels() []string { return l }

// AddLabel adds a label if the error does not carry it yet. It must not be called once the error has been
// returned to a user.
func (l *Labels) AddLabel(label string) {
	if !l.HasLabel(label) {
		*l = append((*l)[:len(*l):len(*l)], label)
	}
}

// RemoveLabel takes a label off, under the same condition.
func (l *Labels) RemoveLabel(label string) {
	if i := slices.Index(*l, label); i >= 0 {
		*l = slices.Delete(slices.Clone(*l), i, i+1)
	}
}

// Labeled is an error that labels can be added to. All types of this package are.
type Labeled interface {
	error
	HasLabel(label string) bool
	AddLabel(label string)
	RemoveLabel(label string)
}

// AddLabel adds a label to the outermost error of err's chain that takes labels.
func AddLabel(err error, label string) {
	var l Labeled
	if errors.As(err, &l) {
		l.AddLabel(label)
	}
}

// Detach returns a copy of an operation's error for others to keep: labels that are added to err later do not reach it,
// and those it has, which say what that operation may do, are left out.
func Detach(err error) error {
	switch e := err.(type) {
	case *ConnectionError:
		c := *e
		c.Labels = nil
		return &c
	case *ServerError:
		c := *e
		c.Labels = nil
		return &c
	case *WriteConcernError:
		c := *e
		c.Labels = nil
		return &c
	case *AuthError:
		c := *e
		c.Wrapped = Detach(e.Wrapped)
		return &c
	case *TimeoutError:
		c := *e
		c.Labels, c.Wrapped = nil, Detach(e.Wrapped)
		return &c
	}
	return err
}
