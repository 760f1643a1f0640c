// Package readpref has the read preferences: which members are read from. They are those of
// version 2.
package readpref

import (
	"time"

	"go.mongodb.org/mongo-driver/tag"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// ErrInvalidTagSet is the error for a tag without a value.
var ErrInvalidTagSet = readpref.ErrInvalidTagSet

type (
	// Mode is the kind of a read preference.
	Mode = readpref.Mode
	// Option is a setting of a read preference.
	Option = readpref.Option
	// ReadPref says which members are read from.
	ReadPref = readpref.ReadPref
)

// The modes.
const (
	PrimaryMode            = readpref.PrimaryMode
	PrimaryPreferredMode   = readpref.PrimaryPreferredMode
	SecondaryMode          = readpref.SecondaryMode
	SecondaryPreferredMode = readpref.SecondaryPreferredMode
	NearestMode            = readpref.NearestMode
)

// ModeFromString returns the mode of a name.
func ModeFromString(mode string) (Mode, error) { return readpref.ModeFromString(mode) }

// WithMaxStaleness says how far behind a member may be.
func WithMaxStaleness(ms time.Duration) Option { return readpref.WithMaxStaleness(ms) }

// WithTags adds a set of tags: names and values in turn.
func WithTags(tags ...string) Option { return readpref.WithTags(tags...) }

// WithTagSets says which tags members must have.
func WithTagSets(tagSets ...tag.Set) Option { return readpref.WithTagSets(tagSets...) }

// WithHedgeEnabled says whether a mongos may ask two members.
func WithHedgeEnabled(hedgeEnabled bool) Option { return readpref.WithHedgeEnabled(hedgeEnabled) }

// New returns a read preference.
func New(mode Mode, opts ...Option) (*ReadPref, error) { return readpref.New(mode, opts...) }

// Primary reads from the primary.
func Primary() *ReadPref { return readpref.Primary() }

// PrimaryPreferred reads from the primary, if there is one.
func PrimaryPreferred(opts ...Option) *ReadPref { return readpref.PrimaryPreferred(opts...) }

// Secondary reads from secondaries.
func Secondary(opts ...Option) *ReadPref { return readpref.Secondary(opts...) }

// SecondaryPreferred reads from secondaries, if there are any.
func SecondaryPreferred(opts ...Option) *ReadPref { return readpref.SecondaryPreferred(opts...) }

// Nearest reads from whichever member is near.
func Nearest(opts ...Option) *ReadPref { return readpref.Nearest(opts...) }
