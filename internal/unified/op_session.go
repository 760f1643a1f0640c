package unified

import (
	"context"
	"errors"

	"allium"
	"allium/bson"
)

func init() {
	register(map[string]operation[*sessionEntity]{
		"startTransaction": func(_ context.Context, _ *runner, s *sessionEntity, a *arguments) (result, error) {
			return result{}, s.StartTransaction(a.transaction())
		},
		"commitTransaction": func(ctx context.Context, _ *runner, s *sessionEntity, a *arguments) (result, error) {
			return result{}, s.CommitTransaction(ctx, allium.EndTransactionOptions{Timeout: a.timeout()})
		},
		"abortTransaction": func(ctx context.Context, _ *runner, s *sessionEntity, a *arguments) (result, error) {
			return result{}, s.AbortTransaction(ctx, allium.EndTransactionOptions{Timeout: a.timeout()})
		},
		"endSession": func(ctx context.Context, _ *runner, s *sessionEntity, a *arguments) (result, error) {
			s.End(ctx, allium.EndSessionOptions{Timeout: a.timeout()})
			return result{}, nil
		},
		"getSnapshotTime": func(_ context.Context, _ *runner, s *sessionEntity, _ *arguments) (result, error) {
			ts := s.SnapshotTime()
			if ts == nil {
				return result{}, errors.New("the session has no snapshot time yet")
			}
			return value(*ts)
		},
		"withTransaction": withTransaction,
	})
}

func withTransaction(ctx context.Context, r *runner, s *sessionEntity, a *arguments) (result, error) {
	ops := a.operations("callback")
	o := a.transaction()
	o.Timeout = a.timeout()
	if err := a.done(); err != nil {
		return result{}, &brokenTest{err}
	}
	var failed error
	err := s.Transact(ctx, func(ctx context.Context) error {
		// The session travels in the context here, and the operations name it too.
		for i := range ops {
			res, err := r.execute(ctx, &ops[i])
			if failed = r.judge(&ops[i], res, err); failed != nil {
				return errors.New("the test fails") // an error with labels might be retried
			}
			if err != nil { // it was expected, and reaches withTransaction even so
				return err
			}
		}
		return nil
	}, o)
	if failed != nil {
		return result{}, broken("callback: %w", failed)
	}
	return result{}, err
}

// operations returns an array of operations.
func (a *arguments) operations(name string) []Operation {
	a.shaped(name, list(0, operationShape))
	var ops []Operation
	for _, doc := range a.documents(name) {
		ops = append(ops, a.operation(doc))
	}
	return ops
}

// operation reads an operation.
func (a *arguments) operation(doc bson.Raw) (op Operation) {
	if err := strict.Unmarshal(doc, &op); err != nil && a.err == nil {
		a.err = err
	}
	return op
}
