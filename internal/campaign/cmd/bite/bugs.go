package main

// bug is a deliberate mistake, and where to look for it.
type bug struct {
	name     string
	topology string
	edits    []edit
	real     bool // it shows in real time only
}

// edit replaces a text that is in the file once.
type edit struct{ file, old, new string }

func one(file, old, new string) []edit { return []edit{{file, old, new}} }

// bugs are mistakes as drivers have had them, or could have.
var bugs = []bug{
	{name: "a retry takes a new transaction number", topology: "replset", edits: one("internal/exec/message.go", "if m.txnNumber == 0 && m.retryableWrite()", "if m.retryableWrite()")},
	{name: "a connection is returned twice", topology: "replset", edits: one("internal/pool/conn.go", "	p.idle = append(p.idle, c)\n", "	p.idle = append(p.idle, c, c)\n")},
	{name: "an owed reply is not drained", topology: "replset", edits: []edit{
		{"internal/conn/roundtrip.go", "c.owed, c.drainLeft = true, c.drainTimeout()", "c.drainLeft = c.drainTimeout()"},
		{"internal/conn/reader.go", "if h.ResponseTo != c.responseTo {", "if false {"}}},
	{name: "a resume token is not advanced", topology: "replset", edits: one("internal/cursor/stream.go", "s.token, s.returned = s.eventEnd, true", "s.returned = true")},
	{name: "a resume token runs ahead", topology: "replset", edits: one("internal/cursor/stream.go", "if len(s.batch) == 0 && s.postBatch != nil {\n\t\t\ts.eventEnd", "if s.postBatch != nil {\n\t\t\ts.eventEnd")},
	{name: "a commit is not pinned", topology: "lb", edits: one("internal/exec/attempt.go", "func (r *run) txnConn() *pool.Conn {\n\tif r.inTransaction() {", "func (r *run) txnConn() *pool.Conn {\n\tif r.inTxn {")},
	{name: "a transaction keeps its connection", topology: "lb", edits: one("internal/session/transaction.go", "\t\tp.Conn.Return()\n", "\t\t_ = p.Conn\n")},
	{name: "an unknown commit counts as done", topology: "replset", edits: one("internal/exec/transaction.go", "	if err == nil {\n		res.Release()\n		return nil\n	}\n	if !res.Unsent && commitUnknown(err) {", "	if err == nil || commitUnknown(err) {\n		res.Release()\n		return nil\n	}\n	if !res.Unsent && commitUnknown(err) {")},
	{name: "an unknown commit runs the whole transaction again", topology: "replset", edits: one("internal/exec/transaction.go", "failure.AddLabel(err, mongoerr.LabelUnknownTransactionCommit)", "failure.AddLabel(err, mongoerr.LabelTransientTransaction)")},
	{name: "write concern errors are ignored", topology: "replset", edits: one("internal/exec/attempt.go", "	e := failure.NewWriteConcernError(r.addr, reply.Body)\n	if e == nil {", "	e := failure.NewWriteConcernError(r.addr, reply.Body)\n	if true {")},
	{name: "afterClusterTime is not sent", topology: "replset", edits: one("internal/exec/message.go", "	if after != nil {\n		dst = bson.AppendTimestamp", "	if false {\n		dst = bson.AppendTimestamp")},
	{name: "a session's operation time stands still", topology: "replset", edits: one("internal/session/session.go", "if !r.OperationTime.IsZero() && (s.operationTime == nil || s.operationTime.Compare(r.OperationTime) < 0) {", "if !r.OperationTime.IsZero() && s.operationTime == nil {")},
	{name: "a snapshot session forgets its time", topology: "replset", edits: one("internal/session/session.go", "if s.opts.Snapshot && s.snapshotTime == nil", "if false")},
	{name: "two operations share a server session", topology: "replset", edits: one("internal/session/pool.go", "		p.stack[n-1] = nil\n		p.stack = p.stack[:n-1]\n		if !s.expired", "		if s.expired(timeoutMinutes) {\n			p.stack = p.stack[:n-1]\n		}\n		if !s.expired")},
	{name: "a pool grows by one too many", topology: "replset", edits: one("internal/pool/checkout.go", "len(p.all) >= p.cfg.MaxPoolSize", "len(p.all) > p.cfg.MaxPoolSize")},
	{name: "a checkout does not end with its context", topology: "replset", edits: one("internal/pool/checkout.go", "case <-ctx.Done():\n			source", "case <-context.Background().Done():\n			source")},
	{name: "a backoff does not end with its context", topology: "replset", edits: []edit{
		{"internal/exec/retry.go", "	case <-ctx.Done():\n		return false\n	}\n}\n\n// baseBackoffOf", "	case <-context.Background().Done():\n		return false\n	}\n}\n\n// baseBackoffOf"},
		{"internal/exec/retry.go", "if !r.deadline.IsZero() && time.Until(r.deadline) <= d {", "if false {"}}},
	{name: "getMore is retried", topology: "replset", edits: one("internal/command/traits.go", "func (*GetMore) Traits() Traits { return Traits{Kind: KindRead} }", "func (*GetMore) Traits() Traits { return Traits{Kind: KindRead, Retryable: true} }")},
	{name: "a cursor that is closed early is not killed", topology: "replset", edits: one("internal/cursor/remains.go", "	res, err := r.exec.RunClosing(ctx, &op)\n	if err == nil {", "	var res exec.Result\n	if err == nil {")},
	{name: "a cursor of a server that was away is forgotten", topology: "replset", edits: one("internal/cursor/remains.go", "!left {\n\t\t\treg.orphans.add(r, sent, err)", "!left {\n\t\t\t_ = reg")},
	{name: "connections in use stay open after Close", topology: "replset", edits: one("internal/pool/pool.go", "		c.interrupted.Store(true)\n		p.takeBack(c)\n", "		_ = c\n")},
	{name: "a reply's memory is used again too early", topology: "replset", edits: one("internal/exec/attempt.go", "	concern, _ := err.(*mongoerr.WriteConcernError)\n", "	concern, _ := err.(*mongoerr.WriteConcernError)\n	defer reply.Release()\n")},
	{name: "a client that closes ends no sessions", topology: "replset", edits: one("client.go", "c.endSessions(ctx) })", "_ = c.endSessions })")},
	{name: "a closed connection stays open", topology: "replset", edits: one("internal/conn/conn.go", "	return c.nc.Close()\n", "	return nil\n")},
	{name: "a failed upload counts as done", topology: "replset", edits: one("gridfs/upload.go", "	err := <-w.done\n	putBatch(w.buf)\n	return s.fail(err)\n", "	<-w.done\n	putBatch(w.buf)\n	return nil\n")},
	{name: "a panic keeps its connection", topology: "replset", edits: one("internal/exec/unwind.go", "\t\tdefer r.giveBack(c)\n", "\t\t_ = r.giveBack\n")},
	{name: "a panic keeps its session", topology: "replset", edits: one("internal/exec/unwind.go", "\t\tdefer func() { r.x.PutSession(r.implicit) }()\n", "\t\t_ = r.x.PutSession\n")},
	{name: "a client that closes aborts nothing", topology: "replset", edits: one("client.go", "c.abortTransactions(ctx) })", "_ = c.abortTransactions })")},
	{name: "an abort that nobody waits for is not sent", topology: "sharded", edits: one("client.go", "\tc.sessions.Left = c.abortLater\n", "\t_ = c.abortLater\n")},
	{name: "Transact believes what Close has aborted", topology: "sharded", edits: one("transaction.go", "\t\tcase txn.Revoked():\n\t\t\treturn fmt.Errorf(\"transact: %w\", mongoerr.ErrClientClosed)\n", "")},
	{name: "a connection that returns takes its cursor", topology: "sharded", edits: one("internal/exec/unwind.go", "\tr.killUnread(ctx, c, reply)", "\tif r.conn != nil {\n\t\tr.killUnread(ctx, c, reply)\n\t}")},
	{name: "a document that does not decode is left out", topology: "replset", edits: one("cursor.go", "\t\tc.cur.Pass(c.cur.Undecoded(err))\n\t\treturn false\n", "\t\treturn c.next(ctx, block)\n")},
	{name: "an event that does not decode is met again", topology: "replset", edits: one("changestream.go", "\ts.stream.Accept() // else", "\tif err == nil {\n\t\ts.stream.Accept()\n\t} // else")},
	{name: "a message is taken before its time", topology: "replset", edits: one("patterns/queue/take.go", "isDue := bson.D{{Key: \"$lte\", Value: bson.A{\"$due\", \"$$NOW\"}}}", "isDue := true")},
	{name: "who has lost a message ends it", topology: "replset", edits: one("patterns/queue/take.go", "if err == nil && n == 0 {", "if false {")},
	{name: "Save does not look at the version", topology: "replset", edits: one("write.go", "s.filter = bson.D{{Key: s.version, Value: v}}", "s.filter = bson.D{}")},
	{name: "certificates are read once", topology: "replset", real: true, edits: one("internal/conn/tls.go", "\troots, own := t.roots.read(), t.own.read()\n", "\troots, own := false, false\n")},
	{name: "a key service's certificates are read once", topology: "replset", real: true, edits: []edit{
		{"internal/keyservice/client.go", "var past = time.Unix(1, 0)\n", "var past = time.Unix(1, 0)\n\nvar first sync.Map\n"},
		{"internal/keyservice/client.go", "settings = files.Config().Clone()", "once, _ := first.LoadOrStore(files, files.Config())\n\t\tsettings = once.(*tls.Config).Clone()"}}},
	{name: "a file that is gone counts as empty", topology: "replset", real: true, edits: one("internal/conn/watched.go", "pathReason(err))\n\t\treturn false\n", "pathReason(err))\n\t\tw.value, w.sum = *new(T), [sha256.Size]byte{}\n\t\treturn true\n")},
}
