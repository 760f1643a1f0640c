package unified

import (
	"context"
	"fmt"
	"reflect"
)

// An operation runs on an entity of type T. It asks a for all its arguments before it runs, and
// returns an error of the driver as it is; an error of the test itself is a brokenTest.
type operation[T any] func(ctx context.Context, r *runner, on T, a *arguments) (result, error)

// operationsOf are the operations of each type of entity, by name.
var operationsOf = map[reflect.Type]map[string]operation[any]{}

// register makes operations of entities of type T known. It is called by init functions; what an
// entity can do may be spread over several of them.
func register[T any](ops map[string]operation[T]) {
	t := reflect.TypeFor[T]()
	if operationsOf[t] == nil {
		operationsOf[t] = map[string]operation[any]{}
	}
	for name, op := range ops {
		if _, ok := operationsOf[t][name]; ok {
			panic(fmt.Sprintf("operation %s of %v is registered twice", name, t))
		}
		operationsOf[t][name] = func(ctx context.Context, r *runner, on any, a *arguments) (result, error) {
			return op(ctx, r, on.(T), a)
		}
	}
}

// A maker makes an entity. Its id is read already.
type maker func(ctx context.Context, r *runner, a *arguments) (any, error)

// makers make the entities that createEntities names, by their kind.
var makers = map[string]maker{}

// registerEntity makes a kind of entity known.
func registerEntity(kind string, m maker) {
	if makers[kind] != nil {
		panic("entity kind " + kind + " is registered twice")
	}
	makers[kind] = m
}

// A closer is an entity that is closed at the end of the test, before its client is.
type closer interface {
	Close(ctx context.Context) error
}
