// Package readpref has the read preferences: which members of a replica set a read may run on.
package readpref

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/tag"
)

// ErrInvalidTagSet is the error for a tag without a value.
var ErrInvalidTagSet = errors.New("an even number of tags must be specified")

var errInvalidReadPreference = errors.New("can not specify tags, max staleness, or hedge with mode primary")

// Mode says which kinds of members are suitable. The zero Mode is none.
type Mode uint8

// The modes.
const (
	_ Mode = iota
	// PrimaryMode reads from the primary.
	PrimaryMode
	// PrimaryPreferredMode reads from the primary, or from a secondary if there is none.
	PrimaryPreferredMode
	// SecondaryMode reads from a secondary.
	SecondaryMode
	// SecondaryPreferredMode reads from a secondary, or from the primary if there is none.
	SecondaryPreferredMode
	// NearestMode reads from any member.
	NearestMode
)

var modeNames = [...]string{"unknown", "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}

// ModeFromString returns the mode with this name, in upper or lower case.
func ModeFromString(mode string) (Mode, error) {
	for m := PrimaryMode; m.IsValid(); m++ {
		if strings.EqualFold(mode, modeNames[m]) {
			return m, nil
		}
	}
	return 0, fmt.Errorf("unknown read preference %v", mode)
}

// IsValid reports whether mode is one of the modes.
func (mode Mode) IsValid() bool { return mode >= PrimaryMode && mode <= NearestMode }

// String returns the mode's name in connection strings.
func (mode Mode) String() string {
	if !mode.IsValid() {
		return modeNames[0]
	}
	return modeNames[mode]
}

// A ReadPref is a mode with what narrows the choice of secondaries.
type ReadPref struct {
	mode         Mode
	maxStaleness *time.Duration
	tagSets      []tag.Set
	hedge        *bool
}

// New returns the preference with this mode. The mode primary takes no options.
func New(mode Mode, opts ...Option) (*ReadPref, error) {
	rp := &ReadPref{mode: mode}
	if mode == PrimaryMode && len(opts) > 0 {
		return nil, errInvalidReadPreference
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(rp); err != nil {
			return nil, err
		}
	}
	return rp, nil
}

// Primary returns the preference for the primary.
func Primary() *ReadPref { return orNil(New(PrimaryMode)) }

// PrimaryPreferred returns a preference with PrimaryPreferredMode; nil if an option fails.
func PrimaryPreferred(opts ...Option) *ReadPref { return orNil(New(PrimaryPreferredMode, opts...)) }

// Secondary returns a preference with SecondaryMode; nil if an option fails.
func Secondary(opts ...Option) *ReadPref { return orNil(New(SecondaryMode, opts...)) }

// SecondaryPreferred returns a preference with SecondaryPreferredMode; nil if an option fails.
func SecondaryPreferred(opts ...Option) *ReadPref { return orNil(New(SecondaryPreferredMode, opts...)) }

// Nearest returns a preference with NearestMode; nil if an option fails.
func Nearest(opts ...Option) *ReadPref { return orNil(New(NearestMode, opts...)) }

func orNil(rp *ReadPref, _ error) *ReadPref { return rp }

// Mode returns the mode.
func (r *ReadPref) Mode() Mode { return r.mode }

// MaxStaleness returns how far a secondary may be behind, and whether that is set.
func (r *ReadPref) MaxStaleness() (time.Duration, bool) {
	if r.maxStaleness == nil {
		return 0, false
	}
	return *r.maxStaleness, true
}

// TagSets returns the sets of tags, in the order in which they are tried.
func (r *ReadPref) TagSets() []tag.Set { return r.tagSets }

// HedgeEnabled returns what WithHedgeEnabled was given, nil if it was not called.
func (r *ReadPref) HedgeEnabled() *bool { return r.hedge }

// String returns the mode, and in parentheses what is set besides.
func (r *ReadPref) String() string {
	var parts []string
	if r.maxStaleness != nil {
		parts = append(parts, fmt.Sprintf("maxStaleness=%v", *r.maxStaleness))
	}
	for _, set := range r.tagSets {
		parts = append(parts, "tagSet="+set.String())
	}
	if r.hedge != nil {
		parts = append(parts, fmt.Sprintf("hedgeEnabled=%v", *r.hedge))
	}
	if len(parts) == 0 {
		return r.mode.String()
	}
	return r.mode.String() + "(" + strings.Join(parts, " ") + ")"
}
