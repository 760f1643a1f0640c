package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/mongoerr"
)

// Book is a document of the collection books.
type Book struct {
	ID      bson.ObjectID `bson:"_id,omitempty"`
	ISBN    string        `bson:"isbn"`
	Title   string        `bson:"title"`
	Authors []string      `bson:"authors"`
	Cents   int           `bson:"cents"`
	Stock   int           `bson:"stock"`
	Added   time.Time     `bson:"added,omitzero"`
}

// Order is a document of the collection orders.
type Order struct {
	ID       bson.ObjectID `bson:"_id,omitempty"`
	Book     bson.ObjectID `bson:"book"`
	Customer string        `bson:"customer"`
}

// Shop is what the program does with its database.
type Shop struct {
	client *allium.Client
	books  *allium.Collection[Book]
	orders *allium.Collection[Order]
}

func newShop(client *allium.Client) *Shop {
	db := client.Database("bookshop")
	return &Shop{
		client: client,
		books:  allium.CollectionOf[Book](db, "books"),
		orders: allium.CollectionOf[Order](db, "orders"),
	}
}

// add inserts a book and returns its _id.
func (s *Shop) add(ctx context.Context, book Book) (bson.ObjectID, error) {
	book.ID = bson.NewObjectID()
	_, err := s.books.InsertOne(ctx, book)
	if errors.Is(err, mongoerr.ErrDuplicateKey) {
		return bson.ObjectID{}, fmt.Errorf("there is a book %s already", book.ISBN)
	}
	return book.ID, err
}

// addMany inserts books in one message.
func (s *Shop) addMany(ctx context.Context, books []Book) error {
	_, err := s.books.InsertMany(ctx, books)
	return err
}

func (s *Shop) byISBN(ctx context.Context, isbn string) (Book, error) {
	book, err := s.books.FindOne(ctx, bson.M{"isbn": isbn})
	if errors.Is(err, mongoerr.ErrNoDocuments) {
		return Book{}, fmt.Errorf("there is no book %s", isbn)
	}
	return book, err
}

// cheap prints the books below a price, the cheapest first.
func (s *Shop) cheap(ctx context.Context, out io.Writer, cents int) error {
	cheap := s.books.Query(ctx, bson.M{"cents": bson.M{"$lt": cents}}, allium.FindOptions{
		Sort:  bson.D{{Key: "cents", Value: 1}, {Key: "_id", Value: 1}},
		Limit: 20,
	})
	for book, err := range cheap {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, book.Cents, book.Title)
	}
	return nil
}

// AuthorBooks is how many books an author has written.
type AuthorBooks struct {
	Author string `bson:"_id"`
	Books  int    `bson:"books"`
}

func (s *Shop) byAuthor(ctx context.Context) ([]AuthorBooks, error) {
	cur, err := allium.Aggregate[AuthorBooks](ctx, s.books, []bson.M{
		{"$unwind": "$authors"},
		{"$group": bson.M{"_id": "$authors", "books": bson.M{"$sum": 1}}},
		{"$sort": bson.D{{Key: "books", Value: -1}, {Key: "_id", Value: 1}}},
	})
	if err != nil {
		return nil, err
	}
	return cur.All(ctx)
}

func (s *Shop) setPrice(ctx context.Context, id bson.ObjectID, cents int) error {
	res, err := s.books.UpdateOne(ctx, bson.M{"_id": id}, bson.M{"$set": bson.M{"cents": cents}})
	if err != nil {
		return err
	}
	if res.MatchedCount == 0 {
		return fmt.Errorf("there is no book %v", id)
	}
	return nil
}

// indexes makes the indexes that the program's queries need. It may be called at each start.
func (s *Shop) indexes(ctx context.Context) error {
	_, err := s.books.CreateIndexes(ctx, []allium.IndexModel{
		{Keys: bson.D{{Key: "isbn", Value: 1}}, Unique: true},
		{Keys: bson.D{{Key: "cents", Value: 1}, {Key: "_id", Value: 1}}},
	})
	return err
}

var errSoldOut = errors.New("sold out")

// order takes a book from the stock and writes the order, or does neither.
func (s *Shop) order(ctx context.Context, book bson.ObjectID, customer string) error {
	return s.client.Transact(ctx, func(ctx context.Context) error {
		res, err := s.books.UpdateOne(ctx,
			bson.M{"_id": book, "stock": bson.M{"$gt": 0}}, bson.M{"$inc": bson.M{"stock": -1}})
		if err != nil {
			return err
		}
		if res.MatchedCount == 0 {
			return errSoldOut // rolls the transaction back
		}
		_, err = s.orders.InsertOne(ctx, Order{Book: book, Customer: customer})
		return err
	})
}

// follow opens a stream of the changes of books from now on.
func (s *Shop) follow(ctx context.Context) (*allium.ChangeStream[Book], error) {
	return s.books.Watch(ctx, nil, allium.WatchOptions{FullDocument: allium.FullDocumentUpdateLookup})
}

// nextEvents prints the next n changes.
func nextEvents(ctx context.Context, stream *allium.ChangeStream[Book], out io.Writer, n int) error {
	for n > 0 && stream.Next(ctx) {
		change := stream.Current()
		fmt.Fprintln(out, change.OperationType, change.FullDocument.Title)
		n--
	}
	return stream.Err()
}

// cover stores a picture and reads it back.
func (s *Shop) cover(ctx context.Context, out io.Writer) error {
	covers := gridfs.NewBucket(s.client.Database("bookshop"), gridfs.BucketOptions{Name: "covers"})
	id, err := covers.UploadFromStream(ctx, "go.svg", strings.NewReader("<svg/>"))
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	if _, err := covers.DownloadToStream(ctx, id, &picture); err != nil {
		return err
	}
	fmt.Fprintln(out, "cover:", picture.Len(), "bytes")
	return nil
}
