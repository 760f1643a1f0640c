package replica

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// What commands tell of a replica set, and the configuration that they change.

// AppendStatus appends what replSetGetStatus tells, as a member sees it.
func (s *Set) AppendStatus(dst []byte, n Peer) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	me := s.find(n)
	now := s.data.Now()
	all, _ := s.votes()
	dst = bsondoc.Append(dst, "set", s.name, "date", bson.NewDateTime(now), "myState", int32(me.state),
		"term", s.Term, "syncSourceHost", "", "syncSourceId", int32(-1),
		"heartbeatIntervalMillis", int64(2000), "majorityVoteCount", int32(all/2+1),
		"writeMajorityCount", int32(s.writeMajority()))
	at, dst := bson.BeginDocumentElement(dst, "optimes")
	dst = s.committed.Append(dst, "lastCommittedOpTime")
	dst = bson.AppendDateTime(dst, "lastCommittedWallTime", bson.NewDateTime(s.commitWall))
	dst = s.committed.Append(dst, "readConcernMajorityOpTime")
	dst = me.applied.Append(dst, "appliedOpTime")
	dst = me.applied.Append(dst, "durableOpTime")
	dst = bson.AppendDateTime(dst, "lastAppliedWallTime", bson.NewDateTime(me.wall))
	dst = bson.AppendDateTime(dst, "lastDurableWallTime", bson.NewDateTime(me.wall))
	dst = bson.EndDocument(dst, at)
	list, dst := bson.BeginArrayElement(dst, "members")
	for i, m := range s.members {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bsondoc.Append(d, "_id", m.id, "name", m.node.Addr())
		healthy := m == me || m.connected() && !me.isolated
		health, state := 1.0, m.state
		if !healthy {
			health, state = 0, stateDown
		}
		d = bsondoc.Append(d, "health", health, "state", int32(state), "stateStr", state.String(),
			"uptime", int32(time.Since(m.node.Started()).Seconds()))
		if m.hasData() {
			d = m.applied.Append(d, "optime")
			d = bson.AppendDateTime(d, "optimeDate", bson.NewDateTime(m.wall))
		}
		d = bsondoc.Append(d, "syncSourceHost", "", "syncSourceId", int32(-1), "infoMessage", "")
		if state == StatePrimary {
			d = bson.AppendTimestamp(d, "electionTime", m.electedTime.TS)
			d = bson.AppendDateTime(d, "electionDate", bson.NewDateTime(m.electedAt))
		}
		d = bsondoc.Append(d, "configVersion", s.version, "configTerm", s.Term)
		if m == me {
			d = bson.AppendBool(d, "self", true)
		}
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, list)
}

// Config returns the configuration, as local.system.replset has it.
func (s *Set) Config(v release.Version) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	return bson.Raw(bson.EndDocument(s.AppendConfig(doc, v), at)).Lookup("config").Value
}

// AppendConfig appends the element "config" of replSetGetConfig.
func (s *Set) AppendConfig(dst []byte, v release.Version) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	config, dst := bson.BeginDocumentElement(dst, "config")
	dst = bsondoc.Append(dst, "_id", s.name, "version", s.version, "term", s.Term)
	list, dst := bson.BeginArrayElement(dst, "members")
	for i, m := range s.members {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bsondoc.Append(d, "_id", m.id, "host", m.node.Addr(), "arbiterOnly", m.Arbiter,
			"buildIndexes", true, "hidden", m.Hidden, "priority", m.Priority)
		d = appendTags(d, m.Tags)
		delay := "secondaryDelaySecs"
		if !v.AtLeast(5, 0) {
			delay = "slaveDelay"
		}
		d = bsondoc.Append(d, delay, int64(m.Delay.Seconds()), "votes", int32(m.Votes))
		dst = bson.EndDocument(d, start)
	}
	dst = bson.EndDocument(dst, list)
	dst = bsondoc.Append(dst, "protocolVersion", int64(1), "writeConcernMajorityJournalDefault", true)
	at, dst := bson.BeginDocumentElement(dst, "settings")
	dst = bsondoc.Append(dst, "chainingAllowed", true, "heartbeatIntervalMillis", int32(2000),
		"heartbeatTimeoutSecs", int32(10), "electionTimeoutMillis", int32(10000))
	modes, dst := bson.BeginDocumentElement(dst, "getLastErrorModes")
	for _, name := range bsondoc.SortedKeys(s.modes) {
		start, d := bson.BeginDocumentElement(dst, name)
		for _, tag := range bsondoc.SortedKeys(s.modes[name]) {
			d = bson.AppendInt32(d, tag, int32(s.modes[name][tag]))
		}
		dst = bson.EndDocument(d, start)
	}
	dst = bson.EndDocument(dst, modes)
	dst = bson.AppendObjectID(dst, "replicaSetId", s.id)
	dst = bson.EndDocument(dst, at)
	return bson.EndDocument(dst, config)
}

// Reconfigure takes over what can change while the set runs: priorities, votes, tags, hidden, and
// the write concern modes.
func (s *Set) Reconfigure(cfg bson.Raw) error {
	bad := func(format string, args ...any) error {
		return srverr.New(srverr.InvalidReplicaSetConfig, format, args...)
	}
	for _, k := range []string{"_id", "version", "members"} {
		if cfg.Lookup(k).IsZero() {
			return bad("Missing expected field \"%s\"", k)
		}
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if name, _ := cfg.Lookup("_id").StringValue(); name != s.name {
		return bad("New and old configurations differ in replica set name; the old name was %s, and the new name is %s",
			s.name, name)
	}
	version, _ := args.NumberOf(cfg.Lookup("version"))
	if version <= int64(s.version) {
		return bad("New replica set configuration version must be greater than old, but %d is not greater than %d for replica set %s", version, s.version, s.name)
	}
	list := cfg.Lookup("members")
	if list.Type != bson.TypeArray {
		return bad("\"members\" had the wrong type. Expected array, found %s", bsontext.TypeName(list.Type))
	}
	configs := map[string]bson.Raw{}
	for e := range bson.Raw(list.Value).Values() {
		doc := bson.Raw(e.Value)
		host, _ := doc.Lookup("host").StringValue()
		configs[host] = doc
	}
	for _, m := range s.members {
		if configs[m.node.Addr()] == nil {
			return srverr.New(srverr.NewReplicaSetConfigurationIncompatible,
				"members cannot be removed from this set: %s is missing", m.node.Addr())
		}
	}
	if len(configs) > len(s.members) {
		return srverr.New(srverr.NewReplicaSetConfigurationIncompatible,
			"members cannot be added to this set, which has %d", len(s.members))
	}
	for _, m := range s.members {
		m.reconfigure(configs[m.node.Addr()])
	}
	s.modes = map[string]map[string]int{}
	if v := cfg.Lookup("settings", "getLastErrorModes"); v.Type == bson.TypeEmbeddedDocument {
		for name, tags := range bson.Raw(v.Value).All() {
			mode := map[string]int{}
			for tag, n := range bson.Raw(tags.Value).All() {
				need, _ := args.NumberOf(n)
				mode[string([]byte(tag))] = int(need)
			}
			s.modes[string([]byte(name))] = mode
		}
	}
	s.version = int32(version)
	s.bumpLocked()
	return nil
}

func (m *member) reconfigure(doc bson.Raw) {
	if v := doc.Lookup("priority"); v.IsNumber() {
		if f, ok := v.Double(); ok {
			m.Priority = f
		} else if n, ok := args.NumberOf(v); ok {
			m.Priority = float64(n)
		}
	}
	if v := doc.Lookup("votes"); v.IsNumber() {
		n, _ := args.NumberOf(v)
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

// AppendOplogQueryData appends what the replication of another member wants to know of this one.
func (s *Set) AppendOplogQueryData(dst []byte, n Peer) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	at, dst := bson.BeginDocumentElement(dst, "$oplogQueryData")
	dst = s.committed.Append(dst, "lastOpCommitted")
	dst = bson.AppendDateTime(dst, "lastCommittedWall", bson.DateTime(int64(s.committed.TS.T)*1000))
	dst = s.find(n).applied.Append(dst, "lastOpApplied")
	dst = bson.AppendInt32(dst, "rbid", 1)
	primary := int32(-1)
	for i, m := range s.members {
		if m.state == StatePrimary {
			primary = int32(i)
		}
	}
	dst = bsondoc.Append(dst, "primaryIndex", primary, "syncSourceIndex", int32(-1))
	return bson.EndDocument(dst, at)
}

// AppendOpTime appends what replies to writes carry. last is the client's last write, zero if it
// wrote nothing that replicates.
func (s *Set) AppendOpTime(dst []byte, last bson.Timestamp, local bool) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if last.IsZero() && local {
		dst = bson.AppendTimestamp(dst, "opTime", last)
	} else {
		dst = OpTime{last, s.Term}.Append(dst, "opTime")
	}
	return bson.AppendObjectID(dst, "electionId", s.electionID)
}

// OperationTime returns the time of the last operation that a read on the node can have seen, at
// majority or local level.
func (s *Set) OperationTime(n Peer, majority bool) bson.Timestamp {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	at := s.find(n).applied.TS
	if majority && s.committed.TS.Compare(at) < 0 {
		return s.committed.TS
	}
	return at
}

// Position returns the current term and how far a node has got.
func (s *Set) Position(n Peer) (term int64, applied bson.Timestamp) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Term, s.find(n).applied.TS
}

// Size returns how many members there are.
func (s *Set) Size() int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return len(s.members)
}

// Committed returns the time up to which a majority has all writes.
func (s *Set) Committed() bson.Timestamp {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.committed.TS
}

// Newest returns the time of the primary's newest write.
func (s *Set) Newest() bson.Timestamp {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.newest.TS
}

// KeepSince returns the oldest time that a member or the commit point is at. ok is false while
// everybody is at the newest write.
func (s *Set) KeepSince() (ts bson.Timestamp, ok bool) {
	if !s.behind.Load() {
		return bson.Timestamp{}, false
	}
	v := s.oldest.Load()
	return bson.Timestamp{T: uint32(v >> 32), I: uint32(v)}, true
}

// WaitStepDown waits while the node is about to step down.
func (s *Set) WaitStepDown(r Waiter, n Peer) error {
	m := s.find(n)
	_, err := s.wait(r, 0, func() bool { return m.stepping == 0 })
	return err
}
