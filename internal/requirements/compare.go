package requirements

// Change is a difference between the rows of a file and its text.
type Change struct {
	Row      *Row      // nil: the sentence is new
	Sentence *Sentence // nil: the sentence is gone; with a row: it was changed
}

// Compare returns what a text has and the rows have not, and the other way round, in the text's
// order. Between two sentences that are as they were, those that are gone and those
// that are new are taken as changed, one after the other.
func Compare(rows []Row, sentences []Sentence) []Change {
	at := map[string]int{}
	for i, s := range sentences {
		at[s.Print] = i
	}
	known := map[string]bool{}
	for _, r := range rows {
		known[r.Print] = true
	}
	var changes []Change
	next := 0 // the first sentence that was not looked at
	gone := []*Row(nil)
	upTo := func(end int) {
		for ; next < end; next++ {
			if known[sentences[next].Print] {
				continue
			}
			c := Change{Sentence: &sentences[next]}
			if len(gone) > 0 {
				c.Row, gone = gone[0], gone[1:]
			}
			changes = append(changes, c)
		}
		for _, r := range gone {
			changes = append(changes, Change{Row: r})
		}
		gone = nil
	}
	for i := range rows {
		if j, ok := at[rows[i].Print]; !ok {
			gone = append(gone, &rows[i])
		} else if j >= next {
			upTo(j)
			next = j + 1
		}
	}
	upTo(len(sentences))
	return changes
}
