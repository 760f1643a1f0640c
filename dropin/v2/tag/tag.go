// Package tag has the tags of the members of a replica set, by which a read preference chooses.
package tag

import "strings"

// A Tag is a name and its value.
type Tag struct {
	Name  string
	Value string
}

// String returns the tag as name=value.
func (tag Tag) String() string { return tag.Name + "=" + tag.Value }

// A Set is a list of tags. A server fits if it has all of them.
type Set []Tag

// NewTagSetFromMap returns the entries of m as a Set, in random order.
func NewTagSetFromMap(m map[string]string) Set {
	set := make(Set, 0, len(m))
	for name, value := range m {
		set = append(set, Tag{name, value})
	}
	return set
}

// NewTagSetsFromMaps returns a Set for each map.
func NewTagSetsFromMaps(maps []map[string]string) []Set {
	sets := make([]Set, len(maps))
	for i, m := range maps {
		sets[i] = NewTagSetFromMap(m)
	}
	return sets
}

// Contains reports whether the set has a tag with this name and value.
func (ts Set) Contains(name, value string) bool {
	for _, t := range ts {
		if t.Name == name && t.Value == value {
			return true
		}
	}
	return false
}

// ContainsAll reports whether the set has all tags of other.
func (ts Set) ContainsAll(other []Tag) bool {
	for _, t := range other {
		if !ts.Contains(t.Name, t.Value) {
			return false
		}
	}
	return true
}

// String returns the tags with commas between them.
func (ts Set) String() string {
	texts := make([]string, len(ts))
	for i, t := range ts {
		texts[i] = t.String()
	}
	return strings.Join(texts, ",")
}
