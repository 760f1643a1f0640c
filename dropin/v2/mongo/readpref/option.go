package readpref

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/tag"
)

// An Option changes a preference that is being made.
type Option func(*ReadPref) error

// WithMaxStaleness says how far a secondary may be behind.
func WithMaxStaleness(ms time.Duration) Option {
	return func(rp *ReadPref) error {
		rp.maxStaleness = &ms
		return nil
	}
}

// WithTags says which tags a secondary must have: names and values in turn. It replaces what
// WithTags and WithTagSets said before.
func WithTags(tags ...string) Option {
	return func(rp *ReadPref) error {
		if len(tags)%2 != 0 {
			return ErrInvalidTagSet
		}
		set := make(tag.Set, 0, len(tags)/2)
		for i := 0; i < len(tags); i += 2 {
			set = append(set, tag.Tag{Name: tags[i], Value: tags[i+1]})
		}
		return WithTagSets(set)(rp)
	}
}

// WithTagSets gives several sets of tags, of which the first counts that a member fits. It replaces
// what WithTags and WithTagSets said before.
func WithTagSets(tagSets ...tag.Set) Option {
	return func(rp *ReadPref) error {
		rp.tagSets = tagSets
		return nil
	}
}

// WithHedgeEnabled says whether a mongos may send the read to several members. Servers from 8.0 on
// ignore it.
//
// Deprecated: Servers from 8.0 on do without.
func WithHedgeEnabled(hedgeEnabled bool) Option {
	return func(rp *ReadPref) error {
		rp.hedge = &hedgeEnabled
		return nil
	}
}
