package release

import (
	"fmt"
	"slices"
	"strings"
)

// markdown is the table of features as docs/mongotest-versions.md shows it: a row for each version,
// kind and direction, with a column for each state.
func markdown() string {
	type change struct {
		at   Version
		gone bool
		kind Kind
	}
	names := map[change]*[3][]string{}
	var rows []change
	add := func(c change, f *Feature, note string) {
		if names[c] == nil {
			names[c] = new([3][]string)
			rows = append(rows, c)
		}
		for _, name := range strings.Fields(f.Names) {
			names[c][f.State] = append(names[c][f.State], "`"+name+"`"+note)
		}
	}
	for i := range Features {
		f := &Features[i]
		var zero Version
		backport := f.Until.Major == f.Since.Major && f.Until.Minor == f.Since.Minor+1
		switch {
		case f.Since != zero:
			add(change{At(f.Since.Major, f.Since.Minor, 0), false, f.Kind}, f, patchNote(f.Since))
			if f.Until != zero && !backport {
				add(change{f.Until, true, f.Kind}, f, "")
			}
		default:
			add(change{At(f.Until.Major, f.Until.Minor, 0), true, f.Kind}, f, patchNote(f.Until))
		}
	}
	slices.SortStableFunc(rows, func(a, b change) int {
		switch {
		case a.at != b.at && b.at.AtLeastPatch(a.at):
			return -1
		case a.at != b.at:
			return 1
		case a.gone != b.gone:
			if a.gone {
				return 1
			}
			return -1
		}
		return int(a.kind) - int(b.kind)
	})
	var b strings.Builder
	b.WriteString("| version | what | there | refused | not built |\n|---|---|---|---|---|\n")
	for _, c := range rows {
		what := c.kind.String()
		if c.gone {
			what += " that it removes"
		}
		fmt.Fprintf(&b, "| %s | %s |", c.at.Series(), what)
		for _, list := range names[c] {
			slices.Sort(list)
			fmt.Fprintf(&b, " %s |", strings.Join(list, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func patchNote(v Version) string {
	if v.Patch == 0 {
		return ""
	}
	return " (" + v.String() + ")"
}
