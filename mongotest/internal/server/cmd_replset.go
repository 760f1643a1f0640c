package server

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, c := range []*Command{
		{Name: "replSetGetConfig", Run: runReplConfig},
		{Name: "replSetStepDown", Run: runStepDown},
		{Name: "replSetStepUp", Run: runStepUp},
		{Name: "replSetFreeze", Run: runFreeze},
		{Name: "replSetInitiate", Run: runInitiate},
		{Name: "replSetReconfig", Run: runReconfig},
		{Name: "replSetGetRBID", Run: runRBID},
		{Name: "replSetMaintenance", Run: runReplNothing},
		{Name: "replSetSyncFrom", Run: runReplNothing},
	} {
		c.AdminOnly, c.Where = true, Anywhere
		c.Roles = []Role{Standalone, Member}
		register(c)
	}
}

func init() {
	register(&Command{Name: "replSetGetStatus", AdminOnly: true, Where: Anywhere, Run: runReplStatus})
}

// replicated refuses replication commands on a standalone.
func (r *Request) replicated() error {
	if r.Node.set == nil {
		return srverr.New(srverr.NoReplicationEnabled, "not running with --replSet")
	}
	return nil
}

func runReplNothing(r *Request, dst []byte) ([]byte, error) { return dst, r.replicated() }

func runRBID(r *Request, dst []byte) ([]byte, error) {
	return bson.AppendInt32(dst, "rbid", 1), r.replicated()
}

func runReplStatus(r *Request, dst []byte) ([]byte, error) {
	if r.Node.role == Mongos {
		at, info := bson.BeginDocument(nil)
		info = bson.EndDocument(bson.AppendString(info, "info", "mongos"), at)
		return dst, &srverr.Error{Msg: "replSetGetStatus is not supported through mongos", Extra: info}
	}
	if err := r.replicated(); err != nil {
		return dst, err
	}
	s := r.Node.set
	s.mu.Lock()
	defer s.mu.Unlock()
	me := s.find(r.Node)
	now := s.data.Clock.Now()
	all, _ := s.votes()
	dst = bson.AppendString(dst, "set", s.name)
	dst = bson.AppendDateTime(dst, "date", bson.NewDateTime(now))
	dst = bson.AppendInt32(dst, "myState", int32(me.state))
	dst = bson.AppendInt64(dst, "term", s.term)
	dst = bson.AppendString(dst, "syncSourceHost", "")
	dst = bson.AppendInt32(dst, "syncSourceId", -1)
	dst = bson.AppendInt64(dst, "heartbeatIntervalMillis", 2000)
	dst = bson.AppendInt32(dst, "majorityVoteCount", int32(all/2+1))
	dst = bson.AppendInt32(dst, "writeMajorityCount", int32(s.writeMajority()))
	at, dst := bson.BeginDocumentElement(dst, "optimes")
	dst = s.committed.append(dst, "lastCommittedOpTime")
	dst = bson.AppendDateTime(dst, "lastCommittedWallTime", bson.NewDateTime(s.commitWall))
	dst = s.committed.append(dst, "readConcernMajorityOpTime")
	dst = me.applied.append(dst, "appliedOpTime")
	dst = me.applied.append(dst, "durableOpTime")
	dst = bson.AppendDateTime(dst, "lastAppliedWallTime", bson.NewDateTime(me.wall))
	dst = bson.AppendDateTime(dst, "lastDurableWallTime", bson.NewDateTime(me.wall))
	dst = bson.EndDocument(dst, at)
	list, dst := bson.BeginArrayElement(dst, "members")
	for i, m := range s.members {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendInt32(d, "_id", m.id)
		d = bson.AppendString(d, "name", m.node.addr)
		healthy := m == me || m.connected() && !me.isolated
		health, state := 1.0, m.state
		if !healthy {
			health, state = 0, stateDown
		}
		d = bson.AppendDouble(d, "health", health)
		d = bson.AppendInt32(d, "state", int32(state))
		d = bson.AppendString(d, "stateStr", state.String())
		d = bson.AppendInt32(d, "uptime", int32(time.Since(m.node.started).Seconds()))
		if m.hasData() {
			d = m.applied.append(d, "optime")
			d = bson.AppendDateTime(d, "optimeDate", bson.NewDateTime(m.wall))
		}
		d = bson.AppendString(d, "syncSourceHost", "")
		d = bson.AppendInt32(d, "syncSourceId", -1)
		d = bson.AppendString(d, "infoMessage", "")
		if state == statePrimary {
			d = bson.AppendTimestamp(d, "electionTime", m.electedTime.TS)
			d = bson.AppendDateTime(d, "electionDate", bson.NewDateTime(m.electedAt))
		}
		d = bson.AppendInt32(d, "configVersion", s.version)
		d = bson.AppendInt64(d, "configTerm", s.term)
		if m == me {
			d = bson.AppendBool(d, "self", true)
		}
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, list), nil
}

func runReplConfig(r *Request, dst []byte) ([]byte, error) {
	if err := r.replicated(); err != nil {
		return dst, err
	}
	s := r.Node.set
	s.mu.Lock()
	defer s.mu.Unlock()
	at, dst := bson.BeginDocumentElement(dst, "config")
	dst = s.appendConfig(dst, r.Node.cfg.Version)
	return bson.EndDocument(dst, at), nil
}

func (s *Set) appendConfig(dst []byte, v Version) []byte {
	dst = bson.AppendString(dst, "_id", s.name)
	dst = bson.AppendInt32(dst, "version", s.version)
	dst = bson.AppendInt64(dst, "term", s.term)
	list, dst := bson.BeginArrayElement(dst, "members")
	for i, m := range s.members {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendInt32(d, "_id", m.id)
		d = bson.AppendString(d, "host", m.node.addr)
		d = bson.AppendBool(d, "arbiterOnly", m.Arbiter)
		d = bson.AppendBool(d, "buildIndexes", true)
		d = bson.AppendBool(d, "hidden", m.Hidden)
		d = bson.AppendDouble(d, "priority", m.Priority)
		d = appendTags(d, m.Tags)
		delay := "secondaryDelaySecs"
		if !v.AtLeast(5, 0) {
			delay = "slaveDelay"
		}
		d = bson.AppendInt64(d, delay, int64(m.Delay.Seconds()))
		d = bson.AppendInt32(d, "votes", int32(m.Votes))
		dst = bson.EndDocument(d, start)
	}
	dst = bson.EndDocument(dst, list)
	dst = bson.AppendInt64(dst, "protocolVersion", 1)
	dst = bson.AppendBool(dst, "writeConcernMajorityJournalDefault", true)
	at, dst := bson.BeginDocumentElement(dst, "settings")
	dst = bson.AppendBool(dst, "chainingAllowed", true)
	dst = bson.AppendInt32(dst, "heartbeatIntervalMillis", 2000)
	dst = bson.AppendInt32(dst, "heartbeatTimeoutSecs", 10)
	dst = bson.AppendInt32(dst, "electionTimeoutMillis", 10000)
	modes, dst := bson.BeginDocumentElement(dst, "getLastErrorModes")
	for _, name := range sortedKeys(s.modes) {
		start, d := bson.BeginDocumentElement(dst, name)
		for _, tag := range sortedKeys(s.modes[name]) {
			d = bson.AppendInt32(d, tag, int32(s.modes[name][tag]))
		}
		dst = bson.EndDocument(d, start)
	}
	dst = bson.EndDocument(dst, modes)
	dst = bson.AppendObjectID(dst, "replicaSetId", s.id)
	return bson.EndDocument(dst, at)
}

func runStepDown(r *Request, dst []byte) ([]byte, error) {
	if err := r.replicated(); err != nil {
		return dst, err
	}
	force := r.Body.Lookup("force").AsBool()
	secs, ok := number(r.Arg())
	if !ok || secs == 0 {
		secs = 60
	}
	catchUp := int64(10)
	if force {
		catchUp = 0
	}
	if v := r.Body.Lookup("secondaryCatchUpPeriodSecs"); !v.IsZero() {
		catchUp, _ = number(v)
	}
	switch {
	case secs < 0:
		return dst, srverr.New(srverr.BadValue, "stepdown period must be a positive integer")
	case catchUp < 0:
		return dst, srverr.New(srverr.BadValue, "secondaryCatchUpPeriodSecs period must be a positive or absent")
	case secs < catchUp && !r.Body.Lookup("secondaryCatchUpPeriodSecs").IsZero():
		return dst, srverr.New(srverr.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	catchUp = min(catchUp, secs)
	return dst, r.Node.set.StepDown(r, r.Node, time.Duration(secs)*time.Second, time.Duration(catchUp)*time.Second, force)
}

func runStepUp(r *Request, dst []byte) ([]byte, error) {
	if err := r.replicated(); err != nil {
		return dst, err
	}
	if r.Node.isPrimary() {
		return dst, nil
	}
	return dst, r.Node.set.StepUp(r.Node)
}

func runFreeze(r *Request, dst []byte) ([]byte, error) {
	if err := r.replicated(); err != nil {
		return dst, err
	}
	secs, _ := number(r.Arg())
	if secs < 0 {
		return dst, srverr.New(srverr.BadValue, "freeze seconds must be positive")
	}
	if r.Node.isPrimary() {
		return dst, srverr.New(srverr.NotSecondary, "cannot freeze node when primary or running for election. state: Primary")
	}
	r.Node.set.Freeze(r.Node, time.Duration(secs)*time.Second)
	if secs == 0 {
		return bson.AppendString(dst, "info", "unfreezing"), nil
	}
	return dst, nil
}

func runInitiate(r *Request, dst []byte) ([]byte, error) {
	if err := r.replicated(); err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.AlreadyInitialized, "already initialized")
}

// runReconfig takes over what can change while the set runs: priorities, votes, tags, hidden, and the write concern modes.
func runReconfig(r *Request, dst []byte) ([]byte, error) {
	if err := r.replicated(); err != nil {
		return dst, err
	}
	if r.Arg().Type != bson.TypeEmbeddedDocument {
		return dst, srverr.New(0, "no configuration specified")
	}
	s := r.Node.set
	if !r.Node.isPrimary() && !r.Body.Lookup("force").AsBool() {
		return dst, srverr.New(srverr.NotWritablePrimary, "New config is rejected :: caused by :: replSetReconfig should only be run on a writable PRIMARY. Current state %s;", r.Node.state())
	}
	cfg := bson.Raw(r.Arg().Value)
	bad := func(format string, args ...any) ([]byte, error) {
		return dst, srverr.New(srverr.InvalidReplicaSetConfig, format, args...)
	}
	for _, k := range []string{"_id", "version", "members"} {
		if cfg.Lookup(k).IsZero() {
			return bad("Missing expected field \"%s\"", k)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, _ := cfg.Lookup("_id").StringValue(); name != s.name {
		return bad("New and old configurations differ in replica set name; the old name was %s, and the new name is %s", s.name, name)
	}
	version, _ := number(cfg.Lookup("version"))
	if version <= int64(s.version) {
		return bad("New replica set configuration version must be greater than old, but %d is not greater than %d for replica set %s", version, s.version, s.name)
	}
	list := cfg.Lookup("members")
	if list.Type != bson.TypeArray {
		return bad("\"members\" had the wrong type. Expected array, found %s", bsontext.TypeName(list.Type))
	}
	for e := range bson.Raw(list.Value).Values() {
		doc := bson.Raw(e.Value)
		host, _ := doc.Lookup("host").StringValue()
		for _, m := range s.members {
			if m.node.addr == host {
				m.reconfigure(doc)
			}
		}
	}
	s.modes = map[string]map[string]int{}
	if v := cfg.Lookup("settings", "getLastErrorModes"); v.Type == bson.TypeEmbeddedDocument {
		for name, tags := range bson.Raw(v.Value).All() {
			mode := map[string]int{}
			for tag, n := range bson.Raw(tags.Value).All() {
				need, _ := number(n)
				mode[string([]byte(tag))] = int(need)
			}
			s.modes[string([]byte(name))] = mode
		}
	}
	s.version = int32(version)
	s.bumpLocked()
	return dst, nil
}

func (m *member) reconfigure(doc bson.Raw) {
	if v := doc.Lookup("priority"); v.IsNumber() {
		if f, ok := v.Double(); ok {
			m.Priority = f
		} else if n, ok := number(v); ok {
			m.Priority = float64(n)
		}
	}
	if v := doc.Lookup("votes"); v.IsNumber() {
		n, _ := number(v)
		m.Votes = int(n)
	}
	if v := doc.Lookup("hidden"); !v.IsZero() {
		m.Hidden = v.AsBool()
	}
	if v := doc.Lookup("tags"); v.Type == bson.TypeEmbeddedDocument {
		tags := map[string]string{}
		for k, t := range bson.Raw(v.Value).All() {
			s, _ := t.StringValue()
			tags[string([]byte(k))] = s
		}
		m.Tags = tags
	}
}
