package exec

import (
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/command"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/internal/wire"
)

// message is the OP_MSG of one attempt: the command's own fields, which were encoded before, and
// those that every command has in common.
type message struct {
	*run
	hello *event.ServerDescription // what the connection's handshake told

	id             int32 // the wire protocol's request id
	session        *session.ServerSession
	unacknowledged bool
}

// errNoTimeLeft says that the time that is left is less than a round trip takes: the command is not
// sent.
var errNoTimeLeft = errors.New("the time that is left is less than a round trip to the server takes")

// noTimeLeft is errNoTimeLeft with the times.
type noTimeLeft struct{ left, roundTrip time.Duration }

func (e *noTimeLeft) Error() string {
	return fmt.Sprintf("%v is left, and a round trip to the server takes at least %v: nothing was sent", max(e.left, 0),
		e.roundTrip)
}

func (e *noTimeLeft) Unwrap() error { return errNoTimeLeft }

// errNoRetryableWrites ends the retry of a write on a server where it could be applied twice.
var errNoRetryableWrites = errors.New("the server that was selected for the retry does not support retryable writes")

// build completes the message that the operation's command was encoded into, for the server at the
// other end of the connection, and returns it. It is valid until the next attempt builds its own.
func (m *message) build() ([]byte, error) {
	m.unacknowledged = m.op.unacknowledged() && !m.inTxn
	t := &m.buf.target
	if m.hello.MaxWireVersion < t.Needs {
		return nil, m.op.Named(t.Lack)
	}
	batch, ok := m.op.Command.(command.Batch)
	if ok {
		if err := m.fit(batch, t); err != nil {
			return nil, m.op.Named(err)
		}
		m.mixed = !batch.Retryable(batch.Count())
	}
	if err := m.takeSession(); err != nil {
		return nil, err
	}
	m.id = wire.NextRequestID()
	var flags wire.Flags
	if m.unacknowledged {
		flags = wire.MoreToCome
	} else if m.mayStream() {
		flags = wire.ExhaustAllowed
	}
	dst := m.buf.msg[:m.own]
	wire.AppendMsg(dst[:0], m.id, 0, flags) // over that of the attempt before
	if m.hello.MaxWireVersion >= t.Since {
		dst = append(dst, m.buf.optional...)
	}
	dst, err := m.appendCommon(dst)
	m.buf.msg = dst // keeps what has grown, also on error
	if err != nil {
		return nil, err
	}
	dst = m.buf.whole(bson.EndDocument(dst, bodyAt))
	if !m.deadline.IsZero() {
		if left := time.Until(m.deadline); left < m.selected.MinRTT { // a long message takes its time
			return nil, &noTimeLeft{left: left, roundTrip: m.selected.MinRTT}
		}
	}
	return wire.FinishMessage(dst, 0), nil
}

// fit drops the statements of a batch that the server does not take. What was encrypted stays as it
// is: servers that can have encrypted fields all have the limits that were assumed.
func (m *message) fit(batch command.Batch, t *command.Target) error {
	if m.enciphered {
		return nil
	}
	t.MaxDocumentSize, t.MaxMessageSize, t.MaxBatchCount = int(m.hello.MaxBSONObjectSize), int(m.hello.MaxMessageSize),
		int(m.hello.MaxWriteBatchSize)
	sequences, err := batch.Fit(m.buf.sequences(), m.own+commonSize, t)
	if err == nil {
		m.buf.tail = m.buf.tail[:m.buf.room+len(sequences)]
	}
	return err
}

// mayStream reports whether the server may answer with more than one reply. In a transaction it may
// not: the session, and behind a load balancer the connection, are needed for the commands in
// between. Routers stream since 7.1.
func (m *message) mayStream() bool {
	router := m.hello.Kind == event.Mongos || m.hello.Kind == event.LoadBalancer
	return m.op.Exhaust && !m.inTxn && (!router || m.hello.MaxWireVersion >= 22)
}

// takeSession finds the session that the command carries. It runs after the checkout, so that an
// operation that waits for a connection holds no session (specification: Driver Sessions).
func (m *message) takeSession() error {
	touched := false
	supported := m.hello.SessionTimeoutMinutes != nil || m.hello.Kind == event.LoadBalancer
	if s := m.op.Session; s != nil {
		if !supported {
			return errors.New("sessions are not supported by this deployment")
		}
		if s.Options().Snapshot && m.hello.MaxWireVersion < 13 {
			return errors.New("snapshot reads require MongoDB 5.0 or later")
		}
		m.session = s.Server()
	} else if supported && !m.unacknowledged && !m.op.NoSession {
		if m.implicit == nil {
			m.implicit, touched = m.x.Sessions.Get(m.x.SessionTimeout()), true
		}
		m.session = m.implicit
	}
	if m.txnNumber != 0 && (m.session == nil || m.hello.Kind == event.Standalone) {
		return errNoRetryableWrites
	}
	if m.session == nil {
		return nil
	}
	if m.txnNumber == 0 && m.retryableWrite() && !m.op.EndsTransaction && m.hello.Kind != event.Standalone &&
		!m.unacknowledged {
		m.session.TxnNumber++
		m.run.txnNumber = m.session.TxnNumber
	}
	if !touched {
		m.session.Touch()
	}
	return nil
}

// appendCommon appends what the executor adds to every command, in the order in which drivers have
// it: tests of programs look at the beginning of commands.
func (m *message) appendCommon(dst []byte) ([]byte, error) {
	op := m.op
	dst = m.appendReadConcern(dst)
	if !m.inTxn {
		wc := op.WriteConcern
		if m.concern != nil {
			wc = m.concern
		}
		if !op.EndsTransaction { // the wtimeout of a commit that is tried again is the driver's own
			wc = op.concern(wc)
		}
		if !wc.IsZero() {
			dst = command.AppendWriteConcern(dst, wc)
		}
	}
	if m.session != nil {
		dst = bson.AppendDocument(dst, "lsid", m.session.ID)
		switch {
		case m.inTransaction():
			dst = bson.AppendInt64(dst, "txnNumber", m.session.TxnNumber)
			if m.startsTxn {
				dst = bson.AppendBool(dst, "startTransaction", true)
			}
			dst = bson.AppendBool(dst, "autocommit", false)
		case m.txnNumber != 0:
			dst = bson.AppendInt64(dst, "txnNumber", m.txnNumber)
		}
	}
	if m.hello.Kind != event.Standalone {
		now := m.x.Clock.Now()
		if op.Session != nil {
			now = session.Newest(now, op.Session.ClusterTime())
		}
		if now != nil {
			dst = bson.AppendDocument(dst, "$clusterTime", now.Doc)
		}
	}
	dst, err := m.appendMaxTime(m.x.ServerAPI.Append(dst))
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "$db", op.DB)
	return m.appendReadPreference(dst), nil
}

// boundsServer reports whether the command carries a maxTimeMS that follows from the time that is
// left. A command of the user's own may have one already, so that a context's deadline alone adds
// none.
func (r *run) boundsServer() bool { return !r.op.NoMaxTime && (r.op.set() || r.op.Kind != Run) }

// appendMaxTime appends maxTimeMS where the driver chooses it.
func (m *message) appendMaxTime(dst []byte) ([]byte, error) {
	limit := m.op.MaxAwait
	if !m.deadline.IsZero() {
		left := time.Until(m.deadline) - m.selected.MinRTT
		switch {
		case left < time.Millisecond:
			return dst, &noTimeLeft{left: time.Until(m.deadline), roundTrip: m.selected.MinRTT}
		case limit > 0:
			limit = min(limit, left)
		case m.boundsServer() && !m.hello.Cryptd: // (specification: Client Side Operations Timeout)
			if limit = left; limit > command.LongestMaxTime {
				limit = 0 // the server would refuse it; the client's own bound stays
			}
		}
	}
	if limit > 0 {
		dst = bson.AppendInt64(dst, "maxTimeMS", command.MaxTimeMS(limit))
	}
	return dst, nil
}

// appendReadConcern appends the read concern: in a transaction the transaction's, with its first
// command only; in a causally consistent session with afterClusterTime; in a snapshot session with
// atClusterTime.
func (m *message) appendReadConcern(dst []byte) []byte {
	op := m.op
	level := op.ReadConcern
	var after *bson.Timestamp
	if s := op.Session; s != nil && !op.EndsTransaction {
		switch {
		case m.inTxn:
			if !m.startsTxn {
				return dst
			}
			level = ""
			if rc := s.Transaction().Options().ReadConcern; rc != nil {
				level = rc.Level
			}
			if s.Causal() {
				after = s.OperationTime()
			}
		case s.Options().Snapshot && op.Implicit == nil && op.Server == nil:
			// Also for commands that do not take it: the server says so, better than a wrong result
			// would.
			start, dst := bson.BeginDocumentElement(dst, "readConcern")
			dst = bson.AppendString(dst, "level", "snapshot")
			if at := s.SnapshotTime(); at != nil {
				dst = bson.AppendTimestamp(dst, "atClusterTime", *at)
			}
			return bson.EndDocument(dst, start)
		case s.Causal() && (op.TakesConcern || op.Kind == Write && command.TakesAfterClusterTime(op.Command.Name())):
			after = s.OperationTime()
		}
	} else if op.EndsTransaction {
		return dst
	}
	if m.hello.Kind == event.Standalone {
		after = nil // there are no cluster times, whatever the session has been told
	}
	if level == "" && after == nil || !op.TakesConcern && after == nil && !m.inTxn {
		return dst
	}
	start, dst := bson.BeginDocumentElement(dst, "readConcern")
	if level != "" {
		dst = bson.AppendString(dst, "level", string(level))
	}
	if after != nil {
		dst = bson.AppendTimestamp(dst, "afterClusterTime", *after)
	}
	return bson.EndDocument(dst, start)
}

// appendReadPreference appends $readPreference by the rules for OP_MSG (specification: Server
// Selection, "Passing read preference to mongos and load balancers" and "Topology type: Single").
func (m *message) appendReadPreference(dst []byte) []byte {
	rp := m.op.ReadPreference
	if m.inTransaction() || m.primary {
		rp = nil // a transaction's is always primary, as that of $out and $merge where old servers are known
	}
	primary := topology.ReadMode(rp) == consistency.Primary
	switch m.hello.Kind {
	case event.Standalone:
		return dst
	case event.Mongos, event.LoadBalancer:
	default:
		if primary && m.op.Kind != Write && m.x.Topology.Description().Kind == event.Single {
			start, dst := bson.BeginDocumentElement(dst, "$readPreference")
			dst = bson.AppendString(dst, "mode", "primaryPreferred")
			return bson.EndDocument(dst, start)
		}
	}
	if primary {
		return dst
	}
	return topology.AppendReadPreference(dst, "$readPreference", rp)
}
