package requirements

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// Draw returns n rows that say what the driver does, chosen by a seed. A row's luck depends on its
// id and the seed alone: other rows that come or go leave most of a draw as it was.
func Draw(files []File, n int, seed int64) []Row {
	type drawn struct {
		row  Row
		rank uint64
	}
	var all []drawn
	for _, f := range files {
		for _, r := range f.Rows {
			if r.Kind != Behaviour {
				continue
			}
			sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, r.ID))
			all = append(all, drawn{r, binary.BigEndian.Uint64(sum[:])})
		}
	}
	slices.SortFunc(all, func(a, b drawn) int { return cmp.Compare(a.rank, b.rank) })
	var rows []Row
	for _, d := range all[:min(n, len(all))] {
		rows = append(rows, d.row)
	}
	return rows
}
