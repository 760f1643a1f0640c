package kms_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"allium/bson"
	"allium/encryption/kms"
)

// Two accounts of Amazon's service, and a key in the program's memory for tests. Nothing prints the
// secrets.
func ExampleProviders_Check() {
	providers := kms.Providers{
		"aws":      kms.AWS{AccessKeyID: "AKID1", SecretAccessKey: "secret"},
		"aws:team": kms.AWS{AccessKeyID: "AKID2", SecretAccessKey: "secret"},
		"local":    kms.Local{Key: make([]byte, 32)},
	}
	fmt.Println(providers.Check())
	providers["local"] = kms.Local{Key: make([]byte, kms.LocalKeySize)}
	fmt.Println(providers.Check())
	aws := providers["aws"].(kms.AWS)
	fmt.Println(aws.AccessKeyID, aws.SecretAccessKey)
	// Output:
	// key service "local": the key has 32 bytes, want 96
	// <nil>
	// AKID1 ***
}

// The documents that other drivers take can be read, too.
func ExampleProvidersFromBSON() {
	doc, err := bson.ParseExtJSON([]byte(`{"kmip": {"endpoint": "kms.example.com:5696"}, "azure": {}}`))
	if err != nil {
		panic(err)
	}
	providers, err := kms.ProvidersFromBSON(doc)
	fmt.Println(providers["kmip"], err)
	_, err = kms.ProvidersFromBSON(bson.Raw(nil))
	fmt.Println(err != nil)
	// Output:
	// {kms.example.com:5696 []} <nil>
	// true
}

func ExampleMasterKeyFromBSON() {
	doc := kms.AppendMasterKey(nil, "aws:team", kms.AWSKey{Region: "eu-central-1", Key: "alias/app"})
	provider, key, err := kms.MasterKeyFromBSON(doc)
	fmt.Println(provider, key.(kms.AWSKey).Key, err)
	// Output: aws:team alias/app <nil>
}

func ExampleAppendMasterKey() {
	doc := bson.Raw(kms.AppendMasterKey(nil, "kmip", kms.KMIPKey{ID: "1", Delegated: true}))
	fmt.Println(doc)
	// Output: {"provider":"kmip","delegated":true,"keyId":"1"}
}

func ExampleCheckMasterKey() {
	fmt.Println(kms.CheckMasterKey("aws", kms.AWSKey{Region: "eu-central-1"}))
	fmt.Println(kms.CheckMasterKey("aws", kms.LocalKey{}))
	// Output:
	// an AWS master key needs Region and Key
	// the master key is of the kind "local", the key service is "aws"
}

func ExampleAWS_OnDemand() {
	fmt.Println(kms.AWS{}.OnDemand(), kms.AWS{AccessKeyID: "AKID", SecretAccessKey: "secret"}.OnDemand())
	// Output: true false
}

func ExampleAzure_OnDemand() {
	fmt.Println(kms.Azure{}.OnDemand(), kms.Azure{AccessToken: "token"}.OnDemand())
	// Output: true false
}

func ExampleGCP_OnDemand() {
	fmt.Println(kms.GCP{}.OnDemand(), kms.GCP{AccessToken: "token"}.OnDemand())
	// Output: true false
}

func ExampleLocal_Format() {
	fmt.Printf("%x\n", kms.Local{Key: []byte("secret")})
	// Output: {Key:***}
}

func ExampleLocal_MarshalJSON() {
	text, err := json.Marshal(kms.Local{Key: []byte("secret")})
	fmt.Println(string(text), err)
	// Output: {"Key":"***"} <nil>
}

func ExampleGCP_Format() {
	fmt.Println(kms.GCP{Email: "app@example.com", PrivateKey: []byte("secret")})
	// Output: {Email:app@example.com PrivateKey:*** Endpoint: AccessToken:*** Hosts:[]}
}

func ExampleGCP_MarshalJSON() {
	text, err := json.Marshal(kms.GCP{Email: "app@example.com", PrivateKey: []byte("secret")})
	fmt.Println(string(text), err)
	// Output: {"Email":"app@example.com","PrivateKey":"***","Endpoint":"","AccessToken":"***"} <nil>
}

// What a key service refused is told with its name, its address and its answer.
func ExampleError() {
	var err error = &kms.Error{Provider: "aws", Endpoint: "kms.eu-central-1.amazonaws.com:443", Status: 400, Err: errors.New("HTTP status=400")}
	fmt.Println(err)
	// Output: key service "aws" at kms.eu-central-1.amazonaws.com:443: HTTP status=400
}

func ExampleError_Error() {
	fmt.Println((&kms.Error{Provider: "gcp", Err: errors.New("no token")}).Error())
	// Output: key service "gcp": no token
}

func ExampleError_Unwrap() {
	cause := errors.New("connection refused")
	fmt.Println(errors.Is(&kms.Error{Provider: "kmip", Err: cause}, cause))
	// Output: true
}
