package bson

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestObjectIDProse1Timestamp: the seconds are an unsigned number.
func TestObjectIDProse1Timestamp(t *testing.T) {
	for _, tt := range []struct {
		seconds uint32
		want    string
	}{
		{0x00000000, "Jan 1 1970 00:00:00"},
		{0x7FFFFFFF, "Jan 19 2038 03:14:07"},
		{0x80000000, "Jan 19 2038 03:14:08"},
		{0xFFFFFFFF, "Feb 7 2106 06:28:15"},
	} {
		var id ObjectID
		binary.BigEndian.PutUint32(id[:], tt.seconds)
		if got := id.Timestamp().Format("Jan 2 2006 15:04:05"); got != tt.want {
			t.Errorf("%08X is %s, want %s", tt.seconds, got, tt.want)
		}
		if got := NewObjectIDFromTime(id.Timestamp()); binary.BigEndian.Uint32(got[:]) != tt.seconds {
			t.Errorf("%s gives %s, want it to start with %08X", id.Timestamp(), got, tt.seconds)
		}
		if got := MinObjectID(id.Timestamp()); got != id {
			t.Errorf("MinObjectID of %s is %s, want %s", id.Timestamp(), got, id)
		}
	}
}

// TestObjectIDProse2CounterOverflow: the counter goes from 0xFFFFFF to 0 and touches nothing else.
func TestObjectIDProse2CounterOverflow(t *testing.T) {
	s := objectIDs.Load()
	for _, high := range []uint32{0, 0xFF000000} { // the second time all 32 bits overflow
		s.counter.Store(high | 0xFFFFFE)
		now := time.Unix(1, 0)
		for _, want := range []string{"ffffff", "000000", "000001"} {
			id := NewObjectIDFromTime(now)
			if got := id.Hex(); got[18:] != want || got[:8] != "00000001" || got[8:18] != fmt.Sprintf("%x", s.process) {
				t.Errorf("got %s, want 00000001, %x and %s", got, s.process, want)
			}
		}
	}
}

// TestObjectIDProse3Process: another process has another random value, however it came to be.
// TestObjectIDCounterBeginsAnywhere: where a process begins to count says nothing (specification:
// ObjectID, "Random value and counter").
func TestObjectIDCounterBeginsAnywhere(t *testing.T) {
	counters, processes := map[uint32]bool{}, map[[5]byte]bool{}
	const n = 64
	var high uint32
	for range n {
		s := newObjectIDSource()
		c := s.counter.Load() & 0xFFFFFF
		counters[c], processes[s.process] = true, true
		high |= c >> 16
	}
	if len(counters) < n/2 || len(processes) < n/2 || high != 0xFF { // all but impossible by chance
		t.Errorf("%d counters and %d random values in %d processes, high bits %#x", len(counters), len(processes), n, high)
	}
}

func TestObjectIDProse3Process(t *testing.T) {
	if os.Getenv("ALLIUM_PRINT_OBJECTID") != "" {
		fmt.Println("id", NewObjectID().Hex())
		os.Exit(0)
	}
	own := NewObjectID()
	cmd := exec.Command(os.Args[0], "-test.run=^TestObjectIDProse3Process$")
	cmd.Env = append(os.Environ(), "ALLIUM_PRINT_OBJECTID=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id, err := ParseObjectID(strings.TrimSpace(strings.TrimPrefix(string(out), "id ")))
	if err != nil {
		t.Fatal(err)
	}
	if string(id[4:9]) == string(own[4:9]) {
		t.Errorf("%s of another process has the random value of %s", id, own)
	}

	// A copy of this process, as far as the mark can tell.
	before := objectIDs.Load()
	t.Cleanup(func() { objectIDs.Store(before) })
	objectIDs.Store(&objectIDSource{process: before.process, mark: forkMark{pid: -1}})
	first, second := NewObjectID(), NewObjectID()
	if string(first[4:9]) == string(own[4:9]) {
		t.Errorf("%s after a fork has the random value of %s", first, own)
	}
	if string(first[4:9]) != string(second[4:9]) {
		t.Errorf("%s and %s of one process differ in the random value", first, second)
	}
}

func TestObjectIDConcurrent(t *testing.T) {
	const goroutines, each = 8, 2000
	ids := make([][]ObjectID, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				ids[g] = append(ids[g], NewObjectID())
			}
		})
	}
	wg.Wait()
	seen := map[ObjectID]bool{}
	for _, own := range ids {
		for _, id := range own {
			if seen[id] {
				t.Fatalf("%s was made twice", id)
			}
			seen[id] = true
		}
	}
}

func TestObjectIDText(t *testing.T) {
	id, err := ParseObjectID("507F1F77bcf86cd799439011")
	if err != nil || id.Hex() != "507f1f77bcf86cd799439011" || id.String() != `ObjectID("507f1f77bcf86cd799439011")` {
		t.Errorf("got %s, %v", id, err)
	}
	for _, s := range []string{"", "507f1f77bcf86cd79943901", "507f1f77bcf86cd7994390111", "507f1f77bcf86cd79943901g"} {
		if id, err := ParseObjectID(s); err == nil {
			t.Errorf("%q is accepted as %s", s, id)
		}
	}
	for _, in := range []string{`"507f1f77bcf86cd799439011"`, `{"$oid":"507f1f77bcf86cd799439011"}`} {
		var got ObjectID
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != id {
			t.Errorf("%s becomes %s, %v", in, got, err)
		}
	}
	for _, in := range []string{`"507f"`, `5`, `{"$oid":"507f"}`, `{"$date":"1970-01-01T00:00:00Z"}`} {
		var got ObjectID
		if err := json.Unmarshal([]byte(in), &got); err == nil {
			t.Errorf("%s is accepted as %s", in, got)
		}
	}
	out, err := json.Marshal(map[ObjectID]ObjectID{id: id})
	if want := `{"507f1f77bcf86cd799439011":"507f1f77bcf86cd799439011"}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
	if NilObjectID.Compare(id) != -1 || id.Compare(id) != 0 || !NilObjectID.IsZero() || id.IsZero() {
		t.Error("Compare or IsZero is wrong")
	}
}

func BenchmarkNewObjectID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewObjectID()
	}
}
