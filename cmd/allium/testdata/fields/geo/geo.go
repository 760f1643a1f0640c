// Package geo has types that package shop uses.
package geo

// Point is a document.
type Point struct {
	Lat, Lon float64
	internal int
}

type secret struct{ A int }

// Box has a field whose type nobody else can name.
type Box struct {
	Corner Point
	Hidden secret
	List   []secret
}
