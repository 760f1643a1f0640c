package event_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
)

func TestTopologyVersionCompare(t *testing.T) {
	p, q := bson.NewObjectID(), bson.NewObjectID()
	for _, tt := range []struct {
		a, b *event.TopologyVersion
		want int
	}{
		{nil, nil, -1},
		{&event.TopologyVersion{p, 1}, nil, -1},
		{nil, &event.TopologyVersion{p, 1}, -1},
		{&event.TopologyVersion{p, 1}, &event.TopologyVersion{p, 1}, 0},
		{&event.TopologyVersion{p, 1}, &event.TopologyVersion{p, 2}, -1},
		{&event.TopologyVersion{p, 3}, &event.TopologyVersion{p, 2}, 1},
		{&event.TopologyVersion{p, 3}, &event.TopologyVersion{q, 2}, -1},
	} {
		if got := tt.a.Compare(tt.b); got != tt.want {
			t.Errorf("%v.Compare(%v) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestServerDescriptionEqual(t *testing.T) {
	a := &event.ServerDescription{Addr: "a:1", Kind: event.RSSecondary, Hosts: []string{"a:1", "b:1"}, SetVersion: new(int64(1)), Tags: event.TagSet{"x": "y"}}
	same := *a
	same.Hosts = []string{"b:1", "a:1"}
	same.SetVersion = new(int64(1))
	same.AverageRTT, same.LastUpdate, same.LastWriteDate = time.Second, time.Now(), time.Now()
	if !a.Equal(&same) {
		t.Error("descriptions that differ in times only are not equal")
	}
	for name, change := range map[string]func(*event.ServerDescription){
		"kind":        func(d *event.ServerDescription) { d.Kind = event.RSPrimary },
		"hosts":       func(d *event.ServerDescription) { d.Hosts = []string{"a:1"} },
		"set version": func(d *event.ServerDescription) { d.SetVersion = nil },
		"tags":        func(d *event.ServerDescription) { d.Tags = nil },
		"error":       func(d *event.ServerDescription) { d.LastError = errors.New("x") },
		"cryptd":      func(d *event.ServerDescription) { d.Cryptd = true },
		"version":     func(d *event.ServerDescription) { d.TopologyVersion = &event.TopologyVersion{} },
	} {
		other := *a
		change(&other)
		if a.Equal(&other) || other.Equal(a) {
			t.Errorf("descriptions that differ in their %s are equal", name)
		}
	}
	// Each field that says what the server is counts, none that says how the last check went.
	ignored := []string{"LastWriteDate", "OpTime", "AverageRTT", "MinRTT", "LastUpdate", "HeartbeatInterval", "MaxBSONObjectSize", "MaxMessageSize",
		"MaxWriteBatchSize", "Compressors", "HelloOK", "ServerConnectionID", "ServiceID"}
	for field := range reflect.TypeFor[event.ServerDescription]().Fields() {
		other := *a
		v := reflect.ValueOf(&other).Elem().FieldByIndex(field.Index)
		switch field.Type {
		case reflect.TypeFor[string]():
			v.SetString("other")
		case reflect.TypeFor[[]string]():
			v.Set(reflect.ValueOf([]string{"other:1"}))
		case reflect.TypeFor[int32](), reflect.TypeFor[time.Duration]():
			v.SetInt(v.Int() + 1)
		case reflect.TypeFor[*int64](), reflect.TypeFor[*bson.ObjectID](), reflect.TypeFor[*event.OpTime](), reflect.TypeFor[*event.TopologyVersion]():
			v.Set(reflect.New(field.Type.Elem()))
		case reflect.TypeFor[bool]():
			v.SetBool(true)
		case reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
		case reflect.TypeFor[event.TagSet]():
			v.Set(reflect.ValueOf(event.TagSet{"other": "1"}))
		case reflect.TypeFor[event.ServerKind]():
			v.Set(reflect.ValueOf(event.RSPrimary))
		case reflect.TypeFor[error]():
			v.Set(reflect.ValueOf(errors.New("other")))
		default:
			t.Errorf("%s has a type that this test does not know", field.Name)
		}
		if got, want := a.Equal(&other), slices.Contains(ignored, field.Name); got != want || other.Equal(a) != want {
			t.Errorf("descriptions that differ in %s are equal: %t, want %t", field.Name, got, want)
		}
	}
}

func TestDescriptionStrings(t *testing.T) {
	td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, SetName: "rs", Servers: []*event.ServerDescription{
		{Addr: "a:1", Kind: event.RSPrimary, Tags: event.TagSet{"rack": "1", "dc": "ny"}, AverageRTT: 1200 * time.Microsecond},
		{Addr: "b:1", LastError: errors.New("connection refused")},
	}}
	want := "ReplicaSetWithPrimary rs [a:1: RSPrimary, tags {dc: ny, rack: 1}, 1.2ms; b:1: Unknown, last error: connection refused]"
	if got := td.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
