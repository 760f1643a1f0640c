package failure

import "allium/mongoerr"

// Name says in an operation's error which command it was, and of which database or collection.
// What an error has of its own already stays.
func Name(err error, command, namespace string) {
	switch e := err.(type) {
	case *mongoerr.ServerError:
		set(&e.Command, &e.Namespace, command, namespace)
	case *mongoerr.ConnectionError:
		set(&e.Command, &e.Namespace, command, namespace)
	case *mongoerr.TimeoutError:
		set(&e.Command, &e.Namespace, command, namespace)
	case *mongoerr.SelectionError:
		set(&e.Command, &e.Namespace, command, namespace)
	case *mongoerr.PoolClearedError:
		set(&e.Command, &e.Namespace, command, namespace)
	case *mongoerr.AuthError:
		set(&e.Command, &e.Namespace, command, namespace)
	case *mongoerr.WriteConcernError:
		set(&e.Command, &e.Namespace, command, namespace)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			Name(err, command, namespace)
		}
	}
}

func set(haveCommand, haveNamespace *string, command, namespace string) {
	if *haveCommand == "" {
		*haveCommand = command
	}
	if *haveNamespace == "" && *haveCommand == command {
		*haveNamespace = namespace
	}
}
