package bench

import "time"

// The realistic struct: 15 fields with a nested struct, a slice of structs, times and a pointer.
// The ID is a type parameter, because each driver has its own ObjectID type.
type order[ID any] struct {
	ID        ID         `bson:"_id"`
	Number    string     `bson:"number"`
	Customer  ID         `bson:"customer"`
	Email     string     `bson:"email"`
	Status    string     `bson:"status"`
	Total     float64    `bson:"total"`
	Currency  string     `bson:"currency"`
	Items     []item     `bson:"items"`
	Ship      addressee  `bson:"ship"`
	Tags      []string   `bson:"tags,omitempty"`
	Paid      bool       `bson:"paid"`
	Retries   int        `bson:"retries"`
	Version   int64      `bson:"version"`
	CreatedAt time.Time  `bson:"createdAt"`
	UpdatedAt *time.Time `bson:"updatedAt,omitempty"`
}

type item struct {
	SKU      string  `bson:"sku"`
	Name     string  `bson:"name"`
	Quantity int     `bson:"quantity"`
	Price    float64 `bson:"price"`
}

type addressee struct {
	Name    string `bson:"name"`
	Street  string `bson:"street"`
	City    string `bson:"city"`
	Zip     string `bson:"zip"`
	Country string `bson:"country"`
}

func sampleOrder[ID any](id, customer ID) order[ID] {
	updated := time.Date(2025, 3, 2, 10, 11, 12, 130e6, time.UTC)
	return order[ID]{
		ID: id, Number: "2025-000123", Customer: customer, Email: "ada.lovelace@example.com", Status: "shipped",
		Total: 129.85, Currency: "EUR",
		Items: []item{
			{"A-1001", "Notebook, dotted, A5", 3, 9.95},
			{"B-2002", "Fountain pen", 1, 79.5},
			{"C-3003", "Ink, blue-black, 50 ml", 2, 10.25},
		},
		Ship: addressee{"Ada Lovelace", "12 St James's Square", "London", "SW1Y 4JH", "GB"},
		Tags: []string{"gift", "express", "returning"}, Paid: true, Retries: 2, Version: 1 << 33,
		CreatedAt: time.Date(2025, 3, 1, 9, 8, 7, 250e6, time.UTC), UpdatedAt: &updated,
	}
}

// tree is deep_bson.json as a struct.
type tree struct {
	Right      *tree  `bson:"right,omitempty"`
	Left       *tree  `bson:"left,omitempty"`
	RightValue string `bson:"rightValue,omitempty"`
	LeftValue  string `bson:"leftValue,omitempty"`
}
