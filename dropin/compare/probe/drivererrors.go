package main

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// driverErrors prints what the errors of package driver say, and what their codes and labels mean.
func driverErrors() {
	for i, e := range []error{driver.Error{}, driver.Error{Message: "m"}, driver.Error{Message: "m", Name: "N"},
		driver.Error{Message: "m", Name: "N", Wrapped: errors.New("w")}, driver.Error{Code: 3, Message: "m"},
		driver.Error{Message: "m", Wrapped: errors.New("m")},
		driver.Error{Message: "m", Name: "N", Wrapped: errors.New("m")},
		driver.Error{Message: "m", Wrapped: errors.New("")}, driver.Error{Wrapped: errors.New("")},
		driver.Error{Name: "N", Wrapped: errors.New("w")}, driver.Error{Wrapped: errors.New("w")},
		driver.WriteError{}, driver.WriteError{Message: "m", Code: 3, Details: []byte{5, 0, 0, 0, 0}},
		driver.WriteErrors{}, driver.WriteErrors{{Message: "a"}, {}}, driver.WriteConcernError{},
		driver.WriteConcernError{Message: "m", Name: "N", Code: 7}, driver.WriteConcernError{Message: "m"},
		driver.WriteCommandError{}, driver.WriteCommandError{WriteErrors: driver.WriteErrors{{Message: "a"}},
			WriteConcernError: &driver.WriteConcernError{Message: "c"}},
		driver.QueryFailureError{}, driver.QueryFailureError{Message: "m", Response: []byte{5, 0, 0, 0, 0}},
	} {
		say(fmt.Sprint("driver error ", i), e.Error())
	}
	old, since := &description.VersionRange{Max: 8}, &description.VersionRange{Max: 9}
	for _, code := range []int32{0, 5, 6, 7, 20, 26, 50, 64, 89, 91, 134, 189, 262, 391, 9001, 10058, 10107,
		11600, 11602, 13388,
		13435, 13436} {
		for _, message := range []string{"", "a not master b", "not master or secondary",
			"the node is recovering", "ns not found",
			"Transaction numbers are", "a transaction numbers"} {
			e := driver.Error{Code: code, Message: message}
			c := driver.WriteConcernError{Code: int64(code), Message: message}
			w := driver.WriteCommandError{WriteConcernError: &c,
				WriteErrors: driver.WriteErrors{{Code: int64(code), Message: message}}}
			say(fmt.Sprintf("driver error of code %d %q", code, message), e.NamespaceNotFound(), e.NodeIsRecovering(),
				e.NodeIsShuttingDown(), e.NotPrimary(), e.RetryableRead(), e.RetryableWrite(old),
				e.RetryableWrite(since),
				e.UnsupportedStorageEngine(), c.NodeIsRecovering(), c.NodeIsShuttingDown(), c.NotPrimary(),
				c.Retryable(description.ServerKindMongos, old),
				c.Retryable(description.ServerKindMongos, since), c.Retryable(description.ServerKindRSPrimary, old),
				c.Retryable(description.ServerKindRSPrimary, since), w.Retryable(description.ServerKindMongos, old),
				w.Retryable(description.ServerKindRSPrimary, since), w.UnsupportedStorageEngine())
		}
	}
	for _, l := range []string{"RetryableWriteError", "NetworkError", "TransientTransactionError", "RetryableError",
		"SystemOverloadedError"} {
		e, w := driver.Error{Labels: []string{l}}, driver.WriteCommandError{Labels: []string{l}}
		say("driver error with "+l, e.NetworkError(), e.RetryableRead(), e.RetryableWrite(old),
			e.RetryableWrite(since),
			e.HasErrorLabel(l), w.HasErrorLabel(l), w.Retryable(description.ServerKindRSPrimary, since))
	}
}
