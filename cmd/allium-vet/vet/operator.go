package vet

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operatorTable has a line for each stage and operator: kind, name, where it may stand, and in
// which versions. It is written and compared by mongotest/internal/vocabulary.
//
//go:embed operators.txt
var operatorTable string

// word is a line of the table.
type word struct {
	places       []string
	since, until version
}

// words are the rows by kind and name: of each name those for its ranges of versions.
var words = func() map[string]map[string][]word {
	all := map[string]map[string][]word{}
	for line := range strings.Lines(operatorTable) {
		cells := strings.Fields(line)
		if len(cells) < 3 || cells[0] == "#" {
			continue
		}
		w := word{places: strings.Split(cells[2], ",")}
		for _, bound := range cells[3:] {
			name, v, _ := strings.Cut(bound, "=")
			parsed, err := parseVersion(v)
			if err != nil {
				panic("operators.txt: " + line)
			}
			switch name {
			case "since":
				w.since = parsed
			case "until":
				w.until = parsed
			}
		}
		if all[cells[0]] == nil {
			all[cells[0]] = map[string][]word{}
		}
		all[cells[0]][cells[1]] = append(all[cells[0]][cells[1]], w)
	}
	return all
}()

// version is one of a server: major, minor, patch.
type version [3]int

func parseVersion(s string) (v version, err error) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return v, fmt.Errorf("server version %q: want major.minor or major.minor.patch", s)
	}
	if len(parts) == 2 {
		v[2] = 1000 // the last of its series
	}
	for i, p := range parts {
		if v[i], err = strconv.Atoi(p); err != nil {
			return v, fmt.Errorf("server version %q: %q is no number", s, p)
		}
	}
	return v, nil
}

func (v version) String() string { return fmt.Sprintf("%d.%d", v[0], v[1]) }

// known reports whether there is such a word, in whatever version.
func known(kind, name string) bool { return words[kind][name] != nil }

func placed(kind, name, place string) bool {
	return slices.ContainsFunc(words[kind][name], func(w word) bool { return slices.Contains(w.places, place) })
}

// missingIn says why servers of a version do not have a known word, "" if they have it.
func missingIn(v version, kind, name string) string {
	var since, until version
	for _, w := range words[kind][name] {
		if slices.Compare(v[:], w.since[:]) >= 0 && (w.until == version{} || slices.Compare(v[:], w.until[:]) < 0) {
			return ""
		}
		since, until = w.since, w.until
	}
	if slices.Compare(v[:], since[:]) < 0 {
		return fmt.Sprintf("servers have it since %s", since)
	}
	return fmt.Sprintf("servers had it before %s", until)
}

// nearest returns the known word of a kind that a name is misspelt from, "" if there is none or
// more than one.
func nearest(kind, name string) string {
	found := ""
	for candidate := range words[kind] {
		if strings.EqualFold(candidate, name) || "$"+name == candidate {
			return candidate
		}
		if len(name) > 4 && distance(candidate, name) <= 1 {
			if found != "" {
				return ""
			}
			found = candidate
		}
	}
	return found
}

// distance is how many letters must be changed, added, removed or swapped with the next.
func distance(a, b string) int {
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, row, before
	}
	return rows[1][len(b)]
}
