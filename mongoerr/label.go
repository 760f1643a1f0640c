package mongoerr

import "slices"

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

// Labels are the error labels of an error: those that the server sent, and those that the
// specifications make the driver add.
type Labels []string

// HasLabel reports whether the error carries this label.
func (l Labels) HasLabel(label string) bool { return slices.Contains(l, label) }

// ErrorLabels returns the labels.
func (l Labels) ErrorLabels() []string { return l }
