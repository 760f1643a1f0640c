package failure

import (
	"maps"
	"slices"
)

// Sealed says which documents of a batch cannot be decrypted, by their index in the batch, and why:
// the key is gone, or the value was changed. It is an error beside a reply in which these documents
// are as the server sent them, and the others are in plain.
type Sealed map[int]error

// Error is that of the first document.
func (s Sealed) Error() string {
	if len(s) == 0 {
		return "no document failed to decrypt"
	}
	return s[slices.Min(slices.Collect(maps.Keys(s)))].Error()
}

// Unwrap returns the errors, in the order of the documents.
func (s Sealed) Unwrap() (errs []error) {
	for _, i := range slices.Sorted(maps.Keys(s)) {
		errs = append(errs, s[i])
	}
	return errs
}
