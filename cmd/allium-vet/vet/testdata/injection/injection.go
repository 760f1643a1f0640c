package injection

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"allium"
	"allium/bson"

	obson "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type login struct {
	Name     string
	Password any
	Field    string
}

func bad(w http.ResponseWriter, r *http.Request, c *allium.UntypedCollection, o *mongo.Collection) {
	ctx := r.Context()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return
	}
	c.FindOne(ctx, body)                                                // want `the client chooses the operators of this filter`
	c.FindOne(ctx, bson.M{"name": body["name"], "active": true})        // want `the client can send an operator for this value`
	o.FindOne(ctx, obson.D{{Key: "name", Value: body["name"]}})         // want `the client can send an operator for this value`
	c.FindOne(ctx, bson.M{"$or": bson.A{bson.M{"name": body["name"]}}}) // want `can send an operator`
	c.UpdateOne(ctx, bson.M{}, body)                                    // want `the client chooses the operators of this update`
	c.Find(ctx, bson.M{r.FormValue("field"): 1})                        // want `the client chooses the field`

	raw, _ := io.ReadAll(r.Body)
	var l login
	json.Unmarshal(raw, &l)
	password := l.Password
	o.FindOne(ctx, obson.M{"name": l.Name, "password": password}) // want `can send an operator`

	label := r.URL.Query().Get("label")
	o.Aggregate(ctx, obson.A{obson.M{"$project": obson.M{"label": label}}})                   // want `a text from the client that begins with \$ is the path of a field here`
	o.Aggregate(ctx, mongo.Pipeline{{{Key: "$group", Value: obson.M{"_id": "$" + l.Field}}}}) // want `the client chooses the field that is read`
	o.Find(ctx, obson.M{"$expr": obson.M{"$eq": obson.A{"$owner", r.PathValue("owner")}}})    // want `a text from the client`
	o.Find(ctx, obson.M{"$where": fmt.Sprintf("this.name == '%s'", r.FormValue("name"))})     // want `the client writes a part of this JavaScript`
}

func good(w http.ResponseWriter, r *http.Request, c *allium.UntypedCollection, o *mongo.Collection) {
	ctx := r.Context()
	var body map[string]any
	json.NewDecoder(r.Body).Decode(&body)
	name, _ := body["name"].(string)
	c.FindOne(ctx, bson.M{"name": name})
	c.FindOne(ctx, bson.M{"name": bson.M{"$eq": body["name"]}})
	c.FindOne(ctx, bson.M{"name": r.FormValue("name")})
	c.UpdateOne(ctx, bson.M{"name": name}, bson.M{"$set": body})
	o.Aggregate(ctx, obson.A{obson.M{"$project": obson.M{"label": obson.M{"$literal": r.FormValue("label")}}}})
	by := r.FormValue("by")
	if by != "city" && by != "name" {
		return
	}
	o.Aggregate(ctx, obson.A{obson.M{"$group": obson.M{"_id": "$" + by}}})
	var l struct{ Name string }
	json.NewDecoder(r.Body).Decode(&l)
	c.FindOne(ctx, bson.M{"name": l.Name})
}

func config(c *allium.UntypedCollection, r *http.Request) {
	var own map[string]any
	json.Unmarshal([]byte(`{"a": 1}`), &own)
	c.Find(r.Context(), own)
}
