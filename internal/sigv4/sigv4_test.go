package sigv4

import "testing"

// The request and the keys of the examples in Amazon's documentation of Signature Version 4.
func TestAuthorization(t *testing.T) {
	const keyID, secret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	for _, test := range []struct {
		r    Request
		want string
	}{
		{Request{Method: "GET", Path: "/", Query: "Action=ListUsers&Version=2010-05-08", Time: "20150830T123600Z", Region: "us-east-1", Service: "iam", Headers: []Header{
			{"x-amz-date", "20150830T123600Z"}, {"host", "iam.amazonaws.com"}, {"content-type", "application/x-www-form-urlencoded; charset=utf-8"}}},
			"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, " +
				"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
		{Request{Method: "GET", Path: "/", Time: "20150830T123600Z", Region: "us-east-1", Service: "service", Headers: []Header{
			{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}}},
			"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, " +
				"Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{Request{Method: "POST", Path: "/", Body: "Param1=value1", Time: "20150830T123600Z", Region: "us-east-1", Service: "service", Headers: []Header{
			{"content-type", "application/x-www-form-urlencoded"}, {"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}}},
			"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=content-type;host;x-amz-date, " +
				"Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		if got := Authorization(test.r, keyID, secret); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
