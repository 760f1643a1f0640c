// Package tag has the tags of servers, which read preferences choose by: those of version 2.
package tag

import "go.mongodb.org/mongo-driver/v2/tag"

// A Tag is a name and a value.
type Tag = tag.Tag

// A Set is the tags of a server.
type Set = tag.Set

// NewTagSetFromMap returns the tags of a map.
func NewTagSetFromMap(m map[string]string) Set { return tag.NewTagSetFromMap(m) }

// NewTagSetsFromMaps returns the tags of each map.
func NewTagSetsFromMaps(maps []map[string]string) []Set { return tag.NewTagSetsFromMaps(maps) }
