package replica

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
)

// AppendHello appends the replica set's part of a hello reply (specification: server discovery and
// monitoring).
func (s *Set) AppendHello(dst []byte, n Peer, v release.Version, legacy bool) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	me := s.find(n)
	var hosts, passives, arbiters []string
	for _, m := range s.members {
		switch {
		case m.Hidden:
		case m.Arbiter:
			arbiters = append(arbiters, m.node.Addr())
		case m.Priority == 0:
			passives = append(passives, m.node.Addr())
		default:
			hosts = append(hosts, m.node.Addr())
		}
	}
	dst = bsondoc.AppendStrings(dst, "hosts", hosts)
	if passives != nil {
		dst = bsondoc.AppendStrings(dst, "passives", passives)
	}
	if arbiters != nil {
		dst = bsondoc.AppendStrings(dst, "arbiters", arbiters)
	}
	dst = bsondoc.Append(dst, "setName", s.name, "setVersion", s.version)
	primaryField := "isWritablePrimary"
	if legacy {
		primaryField = "ismaster"
	}
	dst = bsondoc.Append(dst, primaryField, me.state == StatePrimary, "secondary", me.state == StateSecondary)
	if s.primary != nil && !me.isolated {
		dst = bson.AppendString(dst, "primary", s.primary.node.Addr())
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
	if me.Delay > 0 {
		name := "secondaryDelaySecs"
		if !v.AtLeast(5, 0) {
			name = "slaveDelay"
		}
		dst = bson.AppendInt32(dst, name, int32(me.Delay.Seconds()))
	}
	if len(me.Tags) > 0 {
		dst = appendTags(dst, me.Tags)
	}
	dst = bson.AppendString(dst, "me", me.node.Addr())
	if me.state == StatePrimary {
		dst = bson.AppendObjectID(dst, "electionId", s.electionID)
	}
	at, dst := bson.BeginDocumentElement(dst, "lastWrite")
	dst = me.applied.Append(dst, "opTime")
	dst = bson.AppendDateTime(dst, "lastWriteDate", bson.NewDateTime(me.wall))
	committed, wall := s.committed, s.commitWall
	if committed.compare(me.applied) > 0 {
		committed, wall = me.applied, me.wall
	}
	dst = committed.Append(dst, "majorityOpTime")
	dst = bson.AppendDateTime(dst, "majorityWriteDate", bson.NewDateTime(wall))
	return bson.EndDocument(dst, at)
}

func appendTags(dst []byte, tags map[string]string) []byte {
	at, dst := bson.BeginDocumentElement(dst, "tags")
	for _, k := range bsondoc.SortedKeys(tags) {
		dst = bson.AppendString(dst, k, tags[k])
	}
	return bson.EndDocument(dst, at)
}
