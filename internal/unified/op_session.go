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
	ops, err := operations(a.raw("callback"))
	if err != nil {
		return result{}, &brokenTest{err}
	}
	o := a.transaction()
	o.Timeout = a.timeout()
	return result{}, s.Transact(ctx, func(ctx context.Context) error {
		// The session travels in the context here, and the operations name it too.
		for i := range ops {
			if err := r.callback(ctx, &ops[i]); err != nil {
				return err
			}
		}
		return nil
	}, o)
}

// callback runs an operation of withTransaction's callback: its errors are checked, and reach withTransaction even so.
func (r *runner) callback(ctx context.Context, op *Operation) error {
	res, err := r.execute(ctx, op)
	if wrong := r.judge(op, res, err); wrong != nil {
		return &brokenTest{wrong}
	}
	return err
}

// operations reads a list of operations.
func operations(v bson.RawValue) ([]Operation, error) {
	var ops []Operation
	for el := range rawArray(v) {
		var op Operation
		if err := strict.Unmarshal(el.Value, &op); err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}
