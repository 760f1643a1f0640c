package main

// bug is a deliberate mistake, and where to look for it.
type bug struct {
	name     string
	topology string
	edits    []edit
}

// edit replaces a text that is in the file once.
type edit struct{ file, old, new string }

func one(file, old, new string) []edit { return []edit{{file, old, new}} }

// bugs are mistakes as drivers have had them, or could have.
var bugs = []bug{
	{"a retry takes a new transaction number", "replset", one("internal/exec/message.go", "if m.txnNumber == 0 && m.retryableWrite()", "if m.retryableWrite()")},
	{"a connection is returned twice", "replset", one("internal/pool/conn.go", "	p.idle = append(p.idle, c)\n", "	p.idle = append(p.idle, c, c)\n")},
	{"an owed reply is not drained", "replset", []edit{
		{"internal/conn/roundtrip.go", "c.owed, c.drainLeft = true, c.drainTimeout()", "c.drainLeft = c.drainTimeout()"},
		{"internal/conn/reader.go", "if h.ResponseTo != c.responseTo {", "if false {"}}},
	{"a resume token is not advanced", "replset", one("internal/cursor/stream.go", "s.token, s.returned = s.eventEnd, true", "s.returned = true")},
	{"a resume token runs ahead", "replset", one("internal/cursor/stream.go", "if len(s.batch) == 0 && s.postBatch != nil {\n\t\t\ts.eventEnd", "if s.postBatch != nil {\n\t\t\ts.eventEnd")},
	{"a commit is not pinned", "lb", one("internal/exec/attempt.go", "func (r *run) txnConn() *pool.Conn {\n\tif r.inTransaction() {", "func (r *run) txnConn() *pool.Conn {\n\tif r.inTxn {")},
	{"a transaction keeps its connection", "lb", one("internal/session/transaction.go", "\t\tp.Conn.Return()\n", "\t\t_ = p.Conn\n")},
	{"an unknown commit counts as done", "replset", one("internal/exec/transaction.go", "	if err == nil {\n		res.Release()\n		return nil\n	}\n	if !res.Unsent && commitUnknown(err) {", "	if err == nil || commitUnknown(err) {\n		res.Release()\n		return nil\n	}\n	if !res.Unsent && commitUnknown(err) {")},
	{"an unknown commit runs the whole transaction again", "replset", one("internal/exec/transaction.go", "failure.AddLabel(err, mongoerr.LabelUnknownTransactionCommit)", "failure.AddLabel(err, mongoerr.LabelTransientTransaction)")},
	{"write concern errors are ignored", "replset", one("internal/exec/attempt.go", "	e := failure.NewWriteConcernError(r.addr, reply.Body)\n	if e == nil {", "	e := failure.NewWriteConcernError(r.addr, reply.Body)\n	if true {")},
	{"afterClusterTime is not sent", "replset", one("internal/exec/message.go", "	if after != nil {\n		dst = bson.AppendTimestamp", "	if false {\n		dst = bson.AppendTimestamp")},
	{"a session's operation time stands still", "replset", one("internal/session/session.go", "if !r.OperationTime.IsZero() && (s.operationTime == nil || s.operationTime.Compare(r.OperationTime) < 0) {", "if !r.OperationTime.IsZero() && s.operationTime == nil {")},
	{"a snapshot session forgets its time", "replset", one("internal/session/session.go", "if s.opts.Snapshot && s.snapshotTime == nil", "if false")},
	{"two operations share a server session", "replset", one("internal/session/pool.go", "		p.stack[n-1] = nil\n		p.stack = p.stack[:n-1]\n		if !s.expired", "		if s.expired(timeoutMinutes) {\n			p.stack = p.stack[:n-1]\n		}\n		if !s.expired")},
	{"a pool grows by one too many", "replset", one("internal/pool/checkout.go", "uint64(len(p.all)) >= p.cfg.MaxPoolSize", "uint64(len(p.all)) > p.cfg.MaxPoolSize")},
	{"a checkout does not end with its context", "replset", one("internal/pool/checkout.go", "case <-ctx.Done():\n			source", "case <-context.Background().Done():\n			source")},
	{"a backoff does not end with its context", "replset", []edit{
		{"internal/exec/retry.go", "	case <-ctx.Done():\n		return false\n	}\n}\n\n// baseBackoffOf", "	case <-context.Background().Done():\n		return false\n	}\n}\n\n// baseBackoffOf"},
		{"internal/exec/retry.go", "if !r.deadline.IsZero() && time.Until(r.deadline) <= d {", "if false {"}}},
	{"getMore is retried", "replset", one("internal/command/traits.go", "func (*GetMore) Traits() Traits { return Traits{Kind: KindRead} }", "func (*GetMore) Traits() Traits { return Traits{Kind: KindRead, Retryable: true} }")},
	{"a cursor that is closed early is not killed", "replset", one("internal/cursor/remains.go", "	res, err := r.exec.RunClosing(ctx, &op)\n	if err == nil {", "	var res exec.Result\n	if err == nil {")},
	{"a cursor of a server that was away is forgotten", "replset", one("internal/cursor/remains.go", "!left {\n\t\t\treg.orphans.add(r, sent, err)", "!left {\n\t\t\t_ = reg")},
	{"connections in use stay open after Close", "replset", one("internal/pool/pool.go", "		c.interrupted.Store(true)\n		p.takeBack(c)\n", "		_ = c\n")},
	{"a reply's memory is used again too early", "replset", one("internal/exec/attempt.go", "	concern, _ := err.(*mongoerr.WriteConcernError)\n", "	concern, _ := err.(*mongoerr.WriteConcernError)\n	defer reply.Release()\n")},
	{"a client that closes ends no sessions", "replset", one("client.go", "c.endSessions(ctx) })", "_ = c.endSessions })")},
	{"a closed connection stays open", "replset", one("internal/conn/conn.go", "	return c.nc.Close()\n", "	return nil\n")},
	{"a failed upload counts as done", "replset", one("gridfs/upload.go", "	err := <-w.done\n	putBatch(w.buf)\n	return s.fail(err)\n", "	<-w.done\n	putBatch(w.buf)\n	return nil\n")},
	{"a panic keeps its connection", "replset", one("internal/exec/unwind.go", "\t\tdefer r.giveBack(c)\n", "\t\t_ = r.giveBack\n")},
	{"a panic keeps its session", "replset", one("internal/exec/unwind.go", "\t\tdefer func() { r.x.PutSession(r.implicit) }()\n", "\t\t_ = r.x.PutSession\n")},
	{"a client that closes aborts nothing", "replset", one("client.go", "c.abortTransactions(ctx) })", "_ = c.abortTransactions })")},
	{"an abort that nobody waits for is not sent", "sharded", one("client.go", "\tc.sessions.Left = c.abortLater\n", "\t_ = c.abortLater\n")},
	{"Transact believes what Close has aborted", "sharded", one("transaction.go", "\t\tcase txn.Revoked():\n\t\t\treturn fmt.Errorf(\"transact: %w\", mongoerr.ErrClientClosed)\n", "")},
	{"a connection that returns takes its cursor", "sharded", one("internal/exec/unwind.go", "\tr.killUnread(ctx, c, reply)", "\tif r.conn != nil {\n\t\tr.killUnread(ctx, c, reply)\n\t}")},
	{"a document that does not decode is left out", "replset", one("cursor.go", "\t\tc.cur.Pass(c.cur.Undecoded(err))\n\t\treturn false\n", "\t\treturn c.next(ctx, block)\n")},
	{"an event that does not decode is met again", "replset", one("changestream.go", "\ts.stream.Accept() // else", "\tif err == nil {\n\t\ts.stream.Accept()\n\t} // else")},
}
