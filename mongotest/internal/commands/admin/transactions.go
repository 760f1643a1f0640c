package admin

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// The ends of transactions.

func init() {
	for _, c := range []*server.Command{
		{Name: "commitTransaction", Run: runCommit},
		{Name: "abortTransaction", Run: runAbort},
	} {
		c.AdminOnly, c.Needs, c.API, c.Txn, c.WriteConcern = true, server.Free, server.V1, server.TxnEnds, true
		c.Mongos.WriteErrors = server.ConcernAsIs
		server.Register(c)
	}
}

var commitArgs, abortArgs = txnEndArgs("commitTransaction"), txnEndArgs("abortTransaction")

// txnEndArgs are the arguments of a command that ends a transaction.
func txnEndArgs(name string) *args.Table[args.None] {
	return &args.Table[args.None]{Name: name, Fields: map[string]args.Field[args.None]{"recoveryToken": {}}}
}

// endable refuses an end that is not one of a transaction.
func endable(r *server.Request, t *args.Table[args.None]) error {
	if err := t.ParseCommand(r, nil); err != nil {
		return err
	}
	if !r.InTxn() || r.Txn == nil {
		return srverr.New(srverr.CommandFailed, "%s must be run within a transaction", r.Cmd.Name)
	}
	return nil
}

func runCommit(r *server.Request, dst []byte) ([]byte, error) {
	if err := endable(r, commitArgs); err != nil {
		return dst, err
	}
	return dst, r.CommitTransaction()
}

func runAbort(r *server.Request, dst []byte) ([]byte, error) {
	if err := endable(r, abortArgs); err != nil {
		return dst, err
	}
	r.Session.Abort()
	return dst, nil
}
