// Package collation has the values of the fields of allium.Collation, which says how the server
// compares strings. The server compares as the library ICU does; its documentation tells what each
// setting means for a language.
package collation

// Strength is the level up to which characters are compared.
type Strength int

// The strengths. Each level compares what the ones before it compare, too.
const (
	Primary    Strength = 1 // base characters
	Secondary  Strength = 2 // accents
	Tertiary   Strength = 3 // upper and lower case; the server's default
	Quaternary Strength = 4 // punctuation, if Alternate is Shifted
	Identical  Strength = 5 // code points
)

// CaseFirst says whether upper or lower case sorts first at the tertiary level.
type CaseFirst string

// The orders of upper and lower case.
const (
	UpperFirst   CaseFirst = "upper"
	LowerFirst   CaseFirst = "lower"
	CaseFirstOff CaseFirst = "off" // the server's default
)

// Alternate says whether spaces and punctuation are compared as base characters.
type Alternate string

// The ways to compare spaces and punctuation.
const (
	NonIgnorable Alternate = "non-ignorable" // as base characters; the server's default
	Shifted      Alternate = "shifted"       // at the quaternary level only
)

// MaxVariable says which characters Shifted is about.
type MaxVariable string

// The characters that Shifted is about.
const (
	PunctuationAndSpace MaxVariable = "punct" // the server's default
	Space               MaxVariable = "space"
)
