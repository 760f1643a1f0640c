package expr_test

import (
	"fmt"
	"time"

	"allium/bson"
	"allium/field"
	"allium/field/expr"
)

type Sale struct {
	Item    string
	Price   float64
	Amount  float64
	Rates   []float64
	Labels  []string
	Sold    time.Time
	Paid    bool
	Refunds []Refund
}

type Refund struct{ Value float64 }

var (
	item    = field.Of(func(s *Sale) *string { return &s.Item }).Ref()
	price   = field.Of(func(s *Sale) *float64 { return &s.Price }).Ref()
	amount  = field.Of(func(s *Sale) *float64 { return &s.Amount }).Ref()
	rates   = field.Of(func(s *Sale) *[]float64 { return &s.Rates }).Ref()
	labels  = field.Of(func(s *Sale) *[]string { return &s.Labels }).Ref()
	sold    = field.Of(func(s *Sale) *time.Time { return &s.Sold }).Ref()
	paid    = field.Of(func(s *Sale) *bool { return &s.Paid }).Ref()
	refunds = field.Of(func(s *Sale) *[]Refund { return &s.Refunds }).Ref()
	value   = field.Of(func(r *Refund) *float64 { return &r.Value }).Ref()
)

func show(values ...interface{ BSON() any }) {
	for _, v := range values {
		text, err := bson.MarshalValue(v)
		fmt.Println(text, err)
	}
}

// An expression stands in a filter, in a stage, or in a document that is written by hand.
func Example() {
	dear := expr.Gt(expr.Multiply(price, amount), expr.Lit[Sale](100.5))
	fmt.Println(bson.D(field.Expr(dear)))
	fmt.Println(dear.BSON())
	fmt.Println(bson.D{{Key: "$project", Value: bson.D{{Key: "dear", Value: dear}}}})
	// Output:
	// {"$expr":{"$gt":[{"$multiply":["$price","$amount"]},100.5]}}
	// {"$gt":[{"$multiply":["$price","$amount"]},100.5]}
	// {"$project":{"dear":{"$gt":[{"$multiply":["$price","$amount"]},100.5]}}}
}

// Comparisons and conditions.
func ExampleCond() {
	show(
		expr.Eq(price, amount), expr.Ne(price, amount), expr.Gte(price, amount), expr.Lt(price, amount), expr.Lte(price, amount), expr.Cmp(price, amount),
		expr.And(paid, expr.Or(paid, expr.Not(paid))),
		expr.Cond(paid, price, amount), expr.IfNull(price, amount),
		expr.Switch([]expr.Case[Sale, string]{{When: paid, Then: expr.Lit[Sale]("$paid")}}, item),
	)
	// Output:
	// {"$eq":["$price","$amount"]} <nil>
	// {"$ne":["$price","$amount"]} <nil>
	// {"$gte":["$price","$amount"]} <nil>
	// {"$lt":["$price","$amount"]} <nil>
	// {"$lte":["$price","$amount"]} <nil>
	// {"$cmp":["$price","$amount"]} <nil>
	// {"$and":["$paid",{"$or":["$paid",{"$not":["$paid"]}]}]} <nil>
	// {"$cond":["$paid","$price","$amount"]} <nil>
	// {"$ifNull":["$price","$amount"]} <nil>
	// {"$switch":{"branches":[{"case":"$paid","then":{"$literal":"$paid"}}],"default":"$item"}} <nil>
}

// Numbers, and values as others.
func ExampleAdd() {
	show(
		expr.Add(price, amount), expr.Subtract(price, amount), expr.Divide(price, amount), expr.Mod(price, amount), expr.Pow(price, amount),
		expr.Sqrt(price), expr.Abs(price), expr.Ceil(price), expr.Floor(price), expr.Round(price, 2), expr.Trunc(price, 2),
		expr.ToString(price), expr.ToInt(price), expr.ToLong(price), expr.ToDouble(price), expr.ToDecimal(price), expr.ToObjectID(item), expr.Type(price),
		expr.As[int64](price), expr.Raw[Sale, int]("$$ROOT.n"), expr.Root[Sale](), expr.Now[Sale](),
	)
	// Output:
	// {"$add":["$price","$amount"]} <nil>
	// {"$subtract":["$price","$amount"]} <nil>
	// {"$divide":["$price","$amount"]} <nil>
	// {"$mod":["$price","$amount"]} <nil>
	// {"$pow":["$price","$amount"]} <nil>
	// {"$sqrt":"$price"} <nil>
	// {"$abs":"$price"} <nil>
	// {"$ceil":"$price"} <nil>
	// {"$floor":"$price"} <nil>
	// {"$round":["$price",2]} <nil>
	// {"$trunc":["$price",2]} <nil>
	// {"$toString":"$price"} <nil>
	// {"$toInt":"$price"} <nil>
	// {"$toLong":"$price"} <nil>
	// {"$toDouble":"$price"} <nil>
	// {"$toDecimal":"$price"} <nil>
	// {"$toObjectId":"$item"} <nil>
	// {"$type":"$price"} <nil>
	// "$price" <nil>
	// "$$ROOT.n" <nil>
	// "$$ROOT" <nil>
	// "$$NOW" <nil>
}

// Strings and times.
func ExampleConcat() {
	show(
		expr.Concat(item, expr.Lit[Sale](": "), item), expr.ToLower(item), expr.ToUpper(item), expr.Trim(item), expr.Substr(item, 0, 3), expr.StrLen(item),
		expr.Split(item, "-"), expr.RegexMatch(item, "^a", "i"),
		expr.Year(sold), expr.Month(sold), expr.DayOfMonth(sold), expr.Hour(sold),
		expr.DateTrunc(sold, expr.UnitWeek, ""), expr.DateAdd(sold, 3, expr.UnitDay), expr.DateDiff(sold, expr.Now[Sale](), expr.UnitDay),
		expr.DateToString(sold, "%Y", "Europe/Berlin"),
	)
	// Output:
	// {"$concat":["$item",{"$literal":": "},"$item"]} <nil>
	// {"$toLower":"$item"} <nil>
	// {"$toUpper":"$item"} <nil>
	// {"$trim":{"input":"$item"}} <nil>
	// {"$substrCP":["$item",0,3]} <nil>
	// {"$strLenCP":"$item"} <nil>
	// {"$split":["$item",{"$literal":"-"}]} <nil>
	// {"$regexMatch":{"input":"$item","regex":{"$literal":"^a"},"options":"i"}} <nil>
	// {"$year":"$sold"} <nil>
	// {"$month":"$sold"} <nil>
	// {"$dayOfMonth":"$sold"} <nil>
	// {"$hour":"$sold"} <nil>
	// {"$dateTrunc":{"date":"$sold","unit":"week"}} <nil>
	// {"$dateAdd":{"startDate":"$sold","unit":"day","amount":3}} <nil>
	// {"$dateDiff":{"startDate":"$sold","endDate":"$$NOW","unit":"day"}} <nil>
	// {"$dateToString":{"date":"$sold","format":"%Y","timezone":"Europe/Berlin"}} <nil>
}

// Arrays.
func ExampleMap() {
	refunded := expr.Map(refunds, func(r expr.Value[Sale, Refund]) expr.Value[Sale, float64] { return expr.Field(r, value) })
	show(
		refunded,
		expr.Filter(rates, func(r expr.Value[Sale, float64]) expr.Value[Sale, bool] { return expr.Gt(r, price) }),
		expr.Size(rates), expr.In(item, labels), expr.ElemAt(rates, 2), expr.First(rates), expr.Last(rates), expr.Slice(rates, 2),
		expr.ConcatArrays(rates, refunded), expr.Sum(rates), expr.Avg(rates), expr.Min(rates), expr.Max(rates),
	)
	// Output:
	// {"$map":{"input":"$refunds","as":"element","in":"$$element.value"}} <nil>
	// {"$filter":{"input":"$rates","as":"element","cond":{"$gt":["$$element","$price"]}}} <nil>
	// {"$size":"$rates"} <nil>
	// {"$in":["$item","$labels"]} <nil>
	// {"$arrayElemAt":["$rates",2]} <nil>
	// {"$arrayElemAt":["$rates",0]} <nil>
	// {"$arrayElemAt":["$rates",-1]} <nil>
	// {"$slice":["$rates",2]} <nil>
	// {"$concatArrays":["$rates",{"$map":{"input":"$refunds","as":"element","in":"$$element.value"}}]} <nil>
	// {"$sum":"$rates"} <nil>
	// {"$avg":"$rates"} <nil>
	// {"$min":"$rates"} <nil>
	// {"$max":"$rates"} <nil>
}
