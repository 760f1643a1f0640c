package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// ReadPreference says which member of a set a mongos reads from (specification: server selection).
type ReadPreference struct {
	Mode         string              // empty: primary
	Tags         []map[string]string // the first that any member has counts; none: any member
	MaxStaleness time.Duration       // 0: any
}

// String shows the preference as a mongos's errors do.
func (p *ReadPreference) String() string {
	mode := p.Mode
	if mode == "" {
		mode = "primary"
	}
	text := fmt.Sprintf("{ mode: %q", mode)
	if len(p.Tags) > 0 {
		var sets []string
		for _, tags := range p.Tags {
			var list []string
			for _, k := range bsondoc.SortedKeys(tags) {
				list = append(list, fmt.Sprintf("%s: %q", k, tags[k]))
			}
			sets = append(sets, strings.TrimSpace("{ "+strings.Join(list, ", "))+" }")
		}
		text += ", tags: [ " + strings.Join(sets, ", ") + " ]"
	}
	if p.MaxStaleness > 0 {
		text += fmt.Sprintf(", maxStalenessSeconds: %d", int64(p.MaxStaleness.Seconds()))
	}
	return text + " }"
}

// heartbeat is how often a mongos asks the members how far they are.
const heartbeat = 10 * time.Second

// Select returns a member that the preference allows, nil if there is none: one by chance if there
// are several.
func (s *Set) Select(p *ReadPreference) Peer {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.selectLocked(p)
}

// AwaitMember waits until the preference allows a member; it reports false after the timeout.
func (s *Set) AwaitMember(r Waiter, p *ReadPreference, timeout time.Duration) (bool, error) {
	return s.wait(r, timeout, func() bool { return s.selectLocked(p) != nil })
}

func (s *Set) selectLocked(p *ReadPreference) Peer {
	primary := func() []*member {
		if s.primary == nil || s.lead.Load() == nil {
			return nil
		}
		return []*member{s.primary}
	}
	secondaries := func() (list []*member) {
		for _, m := range s.members {
			if m.state == StateSecondary && !m.Hidden {
				list = append(list, m)
			}
		}
		return list
	}
	var list []*member
	switch p.Mode {
	case "secondary":
		list = s.suitable(p, secondaries())
	case "secondaryPreferred":
		if list = s.suitable(p, secondaries()); len(list) == 0 {
			list = primary()
		}
	case "primaryPreferred":
		if list = primary(); len(list) == 0 {
			list = s.suitable(p, secondaries())
		}
	case "nearest":
		list = s.suitable(p, append(primary(), secondaries()...))
	default:
		list = primary()
	}
	if len(list) == 0 {
		return nil
	}
	return list[rand.IntN(len(list))].node
}

// suitable returns those of some members that are fresh enough and have the tags.
func (s *Set) suitable(p *ReadPreference, list []*member) []*member {
	if p.MaxStaleness > 0 {
		var newest time.Time // the primary's last write, or that of the newest member
		for _, m := range s.members {
			if m.hasData() && m.state != stateDown && m.wall.After(newest) && (s.primary == nil || m == s.primary) {
				newest = m.wall
			}
		}
		list = slices.DeleteFunc(list, func(m *member) bool { return newest.Sub(m.wall)+heartbeat > p.MaxStaleness })
	}
	if len(p.Tags) == 0 {
		return list
	}
	for _, tags := range p.Tags {
		var found []*member
		for _, m := range list {
			has := true
			for k, v := range tags {
				got, ok := m.Tags[k]
				has = has && ok && got == v
			}
			if has {
				found = append(found, m)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// Behind reports whether a member or the commit point is not at the newest write. It never waits.
func (s *Set) Behind() bool { return s.behind.Load() }

// CommittedIfBehind returns the commit point if it is behind the newest write; ok is false else.
func (s *Set) CommittedIfBehind() (ts bson.Timestamp, ok bool) {
	if !s.behind.Load() {
		return ts, false
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.committed.TS, s.committed != s.newest
}
