package index

// The options of geo indexes.

import (
	"math"

	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// checkPlane checks the fields and options of a 2d index.
func (s *Spec) checkPlane() error {
	geo := 0
	for i, f := range s.fields {
		switch {
		case f.Special != "2d":
			continue
		case geo > 0:
			return srverr.New(16800, "can't have 2 geo fields")
		case i > 0:
			return srverr.New(16801, "2d has to be first in index")
		}
		geo++
	}
	option := func(name string, otherwise float64) float64 {
		if v := s.doc.Lookup(name); v.IsNumber() {
			return query.Float(v)
		}
		return otherwise
	}
	if bits := int32(option("bits", 26)); bits < 1 || bits > 32 {
		return srverr.New(srverr.InvalidOptions, "bits for hash must be > 0 and <= 32, but %d bits were specified",
			bits)
	}
	if low, high := option("min", -180), option("max", 180); !(low < high) || math.IsInf(high-low, 0) {
		return srverr.New(srverr.InvalidOptions,
			"region for hash must be valid and have positive area, but [%s, %s] was specified",
			bsontext.CDouble(low, 6), bsontext.CDouble(high, 6))
	}
	return nil
}

// checkSphere checks the version of a 2dsphere index, and how fine and how coarse its cells are.
func (s *Spec) checkSphere() error {
	v := s.doc.Lookup("2dsphereIndexVersion")
	switch n := int32(query.Float(v)); {
	case v.Type == 0:
	case !v.IsNumber():
		return s.badLater(srverr.CannotCreateIndex,
			"invalid type for geo index version { 2dsphereIndexVersion : %s }, only support versions: [1,2,3]",
			bsontext.Value(v))
	case n < 1 || n > 3:
		return s.badLater(srverr.CannotCreateIndex,
			"unsupported geo index version { 2dsphereIndexVersion : %d }, only support versions: [1,2,3]", n)
	}
	coarsest, finest := s.doc.Lookup("coarsestIndexedLevel"), s.doc.Lookup("finestIndexedLevel")
	for _, k := range []string{"coarsestIndexedLevel", "finestIndexedLevel"} {
		if v := s.doc.Lookup(k); v.Type != 0 && !v.IsNumber() {
			return s.bad(srverr.TypeMismatch, "The field '%s' must be a number, but got %s", k, bsontext.TypeName(v.Type))
		}
	}
	switch {
	case query.Float(coarsest) < 0:
		return srverr.New(16747, "coarsestIndexedLevel must be >= 0")
	case query.Float(finest) > 30:
		return srverr.New(16748, "finestIndexedLevel must be <= 30")
	case coarsest.IsNumber() && finest.IsNumber() && query.Float(finest) < query.Float(coarsest):
		return srverr.New(16749, "finestIndexedLevel must be >= coarsestIndexedLevel")
	}
	return nil
}
