// Package release knows the server releases that a deployment can behave as.
package release

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is the server version that a deployment claims and behaves as. What a version has, and
// other versions do not, is in the table Features.
type Version struct{ Major, Minor, Patch int }

// At returns a version.
func At(major, minor, patch int) Version { return Version{major, minor, patch} }

// DefaultVersion is what a deployment is when nobody says otherwise.
var DefaultVersion = Version{8, 0, 15}

// Releases lists the versions that can be chosen: the patch level that stands for the series, and
// its greatest wire version.
var Releases = []struct {
	Major, Minor, patch int
	wire                int32
}{
	{4, 2, 25, 8}, {4, 4, 29, 9}, {5, 0, 31, 13}, {6, 0, 26, 17}, {7, 0, 25, 21}, {8, 0, 15, 25}, {8, 1, 2, 26},
	{8, 2, 1, 27}, {8, 3, 2, 28}, {9, 0, 0, 29},
}

// ParseVersion reads "8.0" (the last patch level known) or "4.4.29". Only released series from 4.2
// on are accepted.
func ParseVersion(s string) (Version, error) {
	var v Version
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return v, fmt.Errorf("server version %q: want major.minor or major.minor.patch", s)
	}
	for i, p := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if i == len(parts) {
			break
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return v, fmt.Errorf("server version %q: %q is not a number", s, parts[i])
		}
		*p = n
	}
	if len(parts) == 2 {
		for _, r := range Releases {
			if r.Major == v.Major && r.Minor == v.Minor {
				v.Patch = r.patch
			}
		}
	}
	if v.MaxWire() == 0 {
		return v, fmt.Errorf("server version %q is not one of %s", s, seriesList())
	}
	return v, nil
}

// Versions returns the versions that can be chosen by their series alone, the oldest first.
func Versions() []Version {
	var all []Version
	for _, r := range Releases {
		all = append(all, Version{r.Major, r.Minor, r.patch})
	}
	return all
}

func seriesList() string {
	var names []string
	for _, r := range Releases {
		names = append(names, fmt.Sprintf("%d.%d", r.Major, r.Minor))
	}
	return strings.Join(names, ", ")
}

// MaxWire returns maxWireVersion, or 0 for a version that is not offered.
func (v Version) MaxWire() int32 {
	for _, r := range Releases {
		if r.Major == v.Major && r.Minor == v.Minor {
			return r.wire
		}
	}
	return 0
}

// AtLeast reports whether v is major.minor or later. The zero Version is the newest.
func (v Version) AtLeast(major, minor int) bool {
	return v == Version{} || v.Major > major || v.Major == major && v.Minor >= minor
}

// AtLeastPatch is AtLeast with the patch level.
func (v Version) AtLeastPatch(o Version) bool {
	return v.AtLeast(o.Major, o.Minor) && (v.Major != o.Major || v.Minor != o.Minor || v.Patch >= o.Patch)
}

// String returns the version with its patch level.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Series returns the version without its patch level, as featureCompatibilityVersion has it.
func (v Version) Series() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
