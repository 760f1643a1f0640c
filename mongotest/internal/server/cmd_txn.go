package server

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	Register(&Command{Name: "commitTransaction", AdminOnly: true, Needs: Free, API: V1, Txn: TxnEnds, WriteConcern: true, Mongos: OnMongos{WriteErrors: ConcernAsIs}, Run: runCommit})
	Register(&Command{Name: "abortTransaction", AdminOnly: true, Needs: Free, API: V1, Txn: TxnEnds, WriteConcern: true, Mongos: OnMongos{WriteErrors: ConcernAsIs}, Run: runAbort})
}

var txnEndFields = map[string]bool{"recoveryToken": true, "coordinator": true}

func runCommit(r *Request, dst []byte) ([]byte, error) {
	if err := r.CheckFields(txnEndFields); err != nil {
		return dst, err
	}
	if !r.InTxn() || r.Txn == nil {
		return dst, srverr.New(srverr.CommandFailed, "commitTransaction must be run within a transaction")
	}
	st, t := &r.Session.State, r.Txn
	if st.Phase == session.TxnCommitted {
		// The client's write concern now waits for everything there is, as the server's no-op write
		// makes it do.
		r.Wrote(t.CommitTS)
		r.Wrote(r.Node.data.newest())
		r.committedOn(t)
		return dst, nil
	}
	if t.Store != nil {
		if err := r.prepareCommit(); err != nil {
			r.Session.Abort()
			return dst, err
		}
		ts, err := t.Store.Commit()
		if err != nil {
			return dst, err
		}
		t.CommitTS = ts
		r.Wrote(ts)
		r.committedOn(t)
		if ts.IsZero() {
			r.Wrote(r.Node.data.newest())
		}
	}
	st.Phase = session.TxnCommitted
	t.End(true)
	return dst, nil
}

func runAbort(r *Request, dst []byte) ([]byte, error) {
	if err := r.CheckFields(txnEndFields); err != nil {
		return dst, err
	}
	if !r.InTxn() || r.Txn == nil {
		return dst, srverr.New(srverr.CommandFailed, "abortTransaction must be run within a transaction")
	}
	r.Session.Abort()
	return dst, nil
}

// CheckFields rejects a field that is neither the command's nor one that every command takes.
func (r *Request) CheckFields(known map[string]bool) error {
	first := true
	for k := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if !known[k] && !r.Generic(k) {
			return arg.UnknownField(r.Cmd.Name + "." + k)
		}
	}
	return nil
}

// newest returns the time of the newest write.
func (d *Data) newest() bson.Timestamp {
	if d.set == nil {
		return d.Clock.Last()
	}
	return d.set.Newest()
}
