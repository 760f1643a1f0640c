package topology

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"allium/bson"
	"allium/event"
)

// randomServer makes up what a server of a small world may say.
func randomServer(r *rand.Rand, addrs []string) *event.ServerDescription {
	pick := func() string { return addrs[r.IntN(len(addrs))] }
	d := &event.ServerDescription{Addr: pick(), Kind: event.ServerKind(r.IntN(int(event.RSGhost) + 1)), MaxWireVersion: int32(r.IntN(25))}
	switch d.Kind {
	case event.UnknownServer:
		d.LastError = errors.New("boom")
		return d
	case event.RSPrimary, event.RSSecondary, event.RSArbiter, event.RSOther:
		d.SetName = []string{"rs", "rs", "rs", "other"}[r.IntN(4)]
		for _, a := range addrs {
			switch r.IntN(4) {
			case 0:
				d.Hosts = append(d.Hosts, a)
			case 1:
				d.Passives = append(d.Passives, a)
			case 2:
				d.Arbiters = append(d.Arbiters, a)
			}
		}
		if r.IntN(3) == 0 {
			d.Me = pick()
		}
	}
	if d.Kind == event.RSPrimary && r.IntN(4) > 0 {
		d.ElectionID = &bson.ObjectID{byte(r.IntN(4))}
		d.SetVersion = new(int64(r.IntN(4)))
	}
	if r.IntN(2) == 0 {
		d.TopologyVersion = &event.TopologyVersion{ProcessID: bson.ObjectID{byte(r.IntN(2))}, Counter: int64(r.IntN(5))}
	}
	if r.IntN(2) == 0 {
		d.SessionTimeoutMinutes = new(int64(r.IntN(60)))
	}
	return d
}

// invariants are what holds for every description that the state machine makes.
func invariants(t *event.TopologyDescription) error {
	primaries := 0
	seen := map[string]bool{}
	for _, s := range t.Servers {
		if seen[s.Addr] {
			return fmt.Errorf("%s is there twice", s.Addr)
		}
		seen[s.Addr] = true
		if s.Kind == event.RSPrimary {
			primaries++
		}
		ok := true
		switch t.Kind {
		case event.UnknownTopology:
			ok = s.Kind == event.UnknownServer || s.Kind == event.RSGhost
		case event.Sharded:
			ok = s.Kind == event.UnknownServer || s.Kind == event.RSGhost || s.Kind == event.Mongos
		case event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary:
			ok = s.Kind != event.Standalone && s.Kind != event.Mongos && (s.SetName == "" || s.SetName == t.SetName)
		}
		if !ok {
			return fmt.Errorf("%v in a topology %v", s, t.Kind)
		}
	}
	if t.Kind != event.Single && (primaries > 1 || (primaries == 1) != (t.Kind == event.ReplicaSetWithPrimary)) {
		return fmt.Errorf("%d primaries in a topology %v", primaries, t.Kind)
	}
	if t.Kind == event.ReplicaSetWithPrimary && t.SetName == "" {
		return errors.New("a replica set without a name")
	}
	return nil
}

// transitions are the steps from one kind of topology to another that there are.
var transitions = map[event.TopologyKind][]event.TopologyKind{
	event.UnknownTopology:       {event.UnknownTopology, event.Single, event.Sharded, event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary},
	event.Single:                {event.Single},
	event.Sharded:               {event.Sharded},
	event.ReplicaSetNoPrimary:   {event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary},
	event.ReplicaSetWithPrimary: {event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary},
}

func TestMachineInvariants(t *testing.T) {
	addrs := []string{"a:1", "b:1", "c:1", "d:1"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		kind := []event.TopologyKind{event.UnknownTopology, event.UnknownTopology, event.ReplicaSetNoPrimary, event.Single}[r.IntN(4)]
		seeds := addrs[:1+r.IntN(3)]
		setName := ""
		if kind == event.ReplicaSetNoPrimary {
			setName = "rs"
		}
		if kind == event.Single {
			seeds = addrs[:1]
		}
		m := machine{seeds: len(seeds)}
		td := initial(kind, setName, seeds)
		for step := range 60 {
			sd := randomServer(r, addrs)
			before, said := clone(td), *sd
			next, recheck := m.next(td, sd)
			fail := func(err any) {
				t.Fatalf("seed %d, step %d: %v\nbefore %v\nsaid   %v\nafter  %v", seed, step, err, td, sd, next)
			}
			if !reflect.DeepEqual(before, clone(td)) || !reflect.DeepEqual(said, *sd) {
				fail("an argument was changed")
			}
			if err := invariants(next); err != nil {
				fail(err)
			}
			if !slices.Contains(transitions[td.Kind], next.Kind) {
				fail("no such transition")
			}
			if td.SetName != "" && next.SetName != td.SetName {
				fail("the replica set changed its name")
			}
			for _, addr := range recheck {
				if s := td.Server(addr); s == nil || s.Kind != event.RSPrimary {
					fail(addr + " was no primary")
				}
			}
			old := td.Server(sd.Addr)
			if ignored := old == nil || old.TopologyVersion.Compare(sd.TopologyVersion) > 0; ignored != (next == td) {
				fail("whether the outcome counts")
			}
			td = next
		}
	}
}

// clone copies a description so far that a change of it shows.
func clone(t *event.TopologyDescription) *event.TopologyDescription {
	c := *t
	c.Servers = nil
	for _, s := range t.Servers {
		d := *s
		d.Hosts, d.Passives, d.Arbiters = slices.Clone(s.Hosts), slices.Clone(s.Passives), slices.Clone(s.Arbiters)
		c.Servers = append(c.Servers, &d)
	}
	return &c
}

func FuzzMachine(f *testing.F) {
	f.Add(uint64(1), uint64(2), byte(0))
	f.Add(uint64(7), uint64(3), byte(2))
	f.Fuzz(func(t *testing.T, a, b uint64, kind byte) {
		r := rand.New(rand.NewPCG(a, b))
		addrs := []string{"a:1", "b:1", "c:1"}
		td := initial(event.TopologyKind(kind%3), "", addrs[:1])
		if td.Kind == event.ReplicaSetNoPrimary {
			td.SetName = "rs"
		}
		for range 100 {
			td, _ = machine{seeds: 1}.next(td, randomServer(r, addrs))
			if err := invariants(td); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Of servers before 6.0, a setVersion without an electionId moves the greatest one forward only.
func TestSetVersionWithoutElection(t *testing.T) {
	tr := transition{TopologyDescription: &event.TopologyDescription{}}
	for _, v := range []int64{1, 3, 2} {
		if !tr.trusts(&event.ServerDescription{MaxWireVersion: 13, SetVersion: &v}) {
			t.Errorf("setVersion %d is not trusted", v)
		}
	}
	if tr.MaxSetVersion == nil || *tr.MaxSetVersion != 3 || tr.MaxElectionID != nil {
		t.Errorf("the greatest is %s", tuple(tr.MaxElectionID, tr.MaxSetVersion))
	}
}
