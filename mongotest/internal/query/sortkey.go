package query

// The keys that an index with a collation has in the server are sort keys of ICU 57.1, and an error
// about a key shows them. The order comes from AppendKey; these are to be shown.

const (
	latinA    = 0x29 // the primary weight of a; each further letter weighs two more
	separator = 1
	common    = 5 // weights that most characters have are counted: one is 5, two are 6 and so on
	// So many of them fit into one byte on the second and third level. Before a greater weight they
	// are counted down from high.
	secondLimit, secondMiddle               = 0x21, 0x25
	thirdLimit, thirdMiddle, thirdHigh      = 0x61, 0x65, 0xc5
	thirdUpper                         byte = 0xdc
)

// untailored are languages that order the letters of ASCII as the root of all collations does.
var untailored = map[string]bool{"en": true, "en_US": true, "de": true, "fr": true, "it": true, "nl": true, "pt": true}

// SortKey returns the server's key for a text of ASCII letters, if the collation has nothing that
// changes their weights.
func (c *Collation) SortKey(s string) (key []byte, ok bool) {
	if s == "" || !untailored[c.locale] || c.strength > 3 || c.caseLevel || c.backwards || c.caseFirst != "off" {
		return nil, false
	}
	for _, ch := range []byte(s) {
		if ch |= 0x20; ch < 'a' || ch > 'z' {
			return nil, false
		}
		key = append(key, latinA+2*((ch|0x20)-'a'))
	}
	if c.strength >= 2 {
		key = append(key, separator)
		n := len(s) - 1
		for ; n >= secondLimit; n -= secondLimit {
			key = append(key, secondMiddle)
		}
		key = append(key, byte(common+n))
	}
	if c.strength >= 3 {
		key = append(key, separator)
		n := 0
		count := func(weight func(n int) byte) {
			if n == 0 {
				return
			}
			for n--; n >= thirdLimit; n -= thirdLimit {
				key = append(key, thirdMiddle)
			}
			key = append(key, weight(n))
			n = 0
		}
		for _, ch := range []byte(s) {
			if ch >= 'a' {
				n++
				continue
			}
			count(func(n int) byte { return byte(thirdHigh - n) })
			key = append(key, thirdUpper)
		}
		count(func(n int) byte { return byte(common + n) })
	}
	return key, true
}
