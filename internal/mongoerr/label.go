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

// HasLabel reports whether err, or an error that it wraps, carries the label.
func HasLabel(err error, label string) bool {
	for err != nil {
		if l, ok := err.(interface{ HasLabel(string) bool }); ok && l.HasLabel(label) {
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if HasLabel(e, label) {
					return true
				}
			}
			return false
		}
		err = errors.Unwrap(err)
	}
	return false
}

func addLabel(labels []string, label string) []string {
	if slices.Contains(labels, label) {
		return labels
	}
	return append(labels[:len(labels):len(labels)], label)
}

func removeLabel(labels []string, label string) []string {
	i := slices.Index(labels, label)
	if i < 0 {
		return labels
	}
	return slices.Delete(slices.Clone(labels), i, i+1)
}
