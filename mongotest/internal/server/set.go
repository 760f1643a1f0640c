package server

import (
	"encoding/binary"
	"sync"
	"time"

	"allium/bson"
)

// OpTime is a place in the history of a replica set: the write's timestamp and the term it was made in.
type OpTime struct {
	TS   bson.Timestamp
	Term int64
}

func (o OpTime) compare(other OpTime) int {
	switch {
	case o.Term < other.Term:
		return -1
	case o.Term > other.Term:
		return 1
	}
	return o.TS.Compare(other.TS)
}

func (o OpTime) append(dst []byte, key string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	dst = bson.AppendTimestamp(dst, "ts", o.TS)
	dst = bson.AppendInt64(dst, "t", o.Term)
	return bson.EndDocument(dst, at)
}

// MemberConfig is a member's entry in the replica set's configuration.
type MemberConfig struct {
	Priority float64
	Votes    int
	Hidden   bool
	Arbiter  bool
	Delay    time.Duration // secondaryDelaySecs: the member stays that far behind
	Tags     map[string]string
}

// memberState is a member's replication state, numbered as replSetGetStatus does.
type memberState int32

const (
	stateStartup   memberState = 0
	statePrimary   memberState = 1
	stateSecondary memberState = 2
	stateArbiter   memberState = 7
	stateDown      memberState = 8
)

// member is a replica set's view of one of its nodes. Guarded by the set's mutex.
type member struct {
	*MemberConfig
	id      int32
	node    *Node
	state   memberState
	applied OpTime
	wall    time.Time // when applied was written
}

// Set is a replica set: its members, who is primary, and how far everybody has got. Safe for concurrent use.
//
// Lock order: Set.mu before Node.mu.
type Set struct {
	name string
	id   bson.ObjectID
	data *Data

	mu         sync.Mutex
	version    int32
	term       int64
	electionID bson.ObjectID
	members    []*member
	primary    *member
	committed  OpTime
	commitWall time.Time
}

// NewSet returns a replica set without members.
func NewSet(name string, data *Data) *Set {
	return &Set{name: name, id: bson.NewObjectID(), data: data, version: 1}
}

// Name returns the set's name.
func (s *Set) Name() string { return s.name }

// Add adds a node as a member; it starts as a secondary, or as an arbiter.
func (s *Set) Add(n *Node, cfg MemberConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := stateSecondary
	if cfg.Arbiter {
		state = stateArbiter
	}
	s.members = append(s.members, &member{MemberConfig: &cfg, id: int32(len(s.members)), node: n, state: state})
	n.set = s
}

// Elect makes the most suitable member primary. It reports false if no member can be.
func (s *Set) Elect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *member
	for _, m := range s.members {
		if m.state == stateSecondary && m.Priority > 0 && (best == nil || m.Priority > best.Priority) {
			best = m
		}
	}
	if best == nil {
		return false
	}
	s.term++
	best.state = statePrimary
	s.primary = best
	s.electionID = bson.ObjectID{0x7f, 0xff, 0xff, 0xff}
	binary.BigEndian.PutUint64(s.electionID[4:], uint64(s.term))
	s.wroteLocked(s.data.Clock.Tick())
	for _, m := range s.members {
		m.node.bumpTopology()
	}
	return true
}

// Wrote tells the set that the primary has written up to ts.
func (s *Set) Wrote(ts bson.Timestamp) {
	s.mu.Lock()
	s.wroteLocked(ts)
	s.mu.Unlock()
}

func (s *Set) wroteLocked(ts bson.Timestamp) {
	now := s.data.Clock.Now()
	at := OpTime{ts, s.term}
	for _, m := range s.members {
		if m.state == statePrimary || m.state == stateSecondary {
			m.applied, m.wall = at, now
		}
	}
	s.committed, s.commitWall = at, now
}

// find returns the entry of a node.
func (s *Set) find(n *Node) *member {
	for _, m := range s.members {
		if m.node == n {
			return m
		}
	}
	return nil
}

// appendHello appends the replica set's part of a hello reply.
func (s *Set) appendHello(dst []byte, n *Node, legacy bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	me := s.find(n)
	var hosts, passives, arbiters []string
	for _, m := range s.members {
		switch {
		case m.Hidden:
		case m.Arbiter:
			arbiters = append(arbiters, m.node.addr)
		case m.Priority == 0:
			passives = append(passives, m.node.addr)
		default:
			hosts = append(hosts, m.node.addr)
		}
	}
	dst = appendStrings(dst, "hosts", hosts)
	if passives != nil {
		dst = appendStrings(dst, "passives", passives)
	}
	if arbiters != nil {
		dst = appendStrings(dst, "arbiters", arbiters)
	}
	dst = bson.AppendString(dst, "setName", s.name)
	dst = bson.AppendInt32(dst, "setVersion", s.version)
	primaryField := "isWritablePrimary"
	if legacy {
		primaryField = "ismaster"
	}
	dst = bson.AppendBool(dst, primaryField, me.state == statePrimary)
	dst = bson.AppendBool(dst, "secondary", me.state == stateSecondary)
	if s.primary != nil {
		dst = bson.AppendString(dst, "primary", s.primary.node.addr)
	}
	if me.Arbiter {
		dst = bson.AppendBool(dst, "arbiterOnly", true)
	}
	if me.Priority == 0 && !me.Arbiter {
		dst = bson.AppendBool(dst, "passive", true)
	}
	if me.Hidden {
		dst = bson.AppendBool(dst, "hidden", true)
	}
	if len(me.Tags) > 0 {
		dst = appendTags(dst, me.Tags)
	}
	dst = bson.AppendString(dst, "me", me.node.addr)
	if me.state == statePrimary {
		dst = bson.AppendObjectID(dst, "electionId", s.electionID)
	}
	at, dst := bson.BeginDocumentElement(dst, "lastWrite")
	dst = me.applied.append(dst, "opTime")
	dst = bson.AppendDateTime(dst, "lastWriteDate", bson.NewDateTime(me.wall))
	dst = s.committed.append(dst, "majorityOpTime")
	dst = bson.AppendDateTime(dst, "majorityWriteDate", bson.NewDateTime(s.commitWall))
	return bson.EndDocument(dst, at)
}

func appendTags(dst []byte, tags map[string]string) []byte {
	at, dst := bson.BeginDocumentElement(dst, "tags")
	for _, k := range sortedKeys(tags) {
		dst = bson.AppendString(dst, k, tags[k])
	}
	return bson.EndDocument(dst, at)
}
